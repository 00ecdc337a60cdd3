"""What can go wrong, as exceptions with a code, a stage and one sentence.

Codes are the names of `csn_code_name()` in libcaisson. What a command does, also to be killed, is a result.
"""

from __future__ import annotations

from typing import Dict, Type


class CaissonError(Exception):
    """Something could not be done. `code` names why, `stage` what was being done; str() is one sentence on both."""

    def __init__(self, text: str, code: str = "invalid", stage: str = "") -> None:
        super().__init__(text)
        self.code = code
        self.stage = stage

    def __reduce__(self) -> "tuple[type[CaissonError], tuple[str, str, str]]":
        return (type(self), (str(self), self.code, self.stage))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r}, code={self.code!r}, stage={self.stage!r})"


class NotFound(CaissonError):
    """There is no such file, tag or sandbox (`enoent`)."""


class AlreadyExists(CaissonError):
    """It is there already (`eexist`)."""


class IsADirectory(CaissonError):
    """A folder where a file was asked for (`eisdir`)."""


class NotADirectory(CaissonError):
    """A file where a folder was asked for (`enotdir`)."""


class NotEmpty(CaissonError):
    """A folder with something in it (`enotempty`)."""


class AccessDenied(CaissonError):
    """The sandbox does not permit it (`eacces`, `eperm`, `erofs`)."""


class Invalid(CaissonError):
    """The request is not one; the sentence names what (`invalid`, `einval`)."""


class InvalidPattern(Invalid):
    """No pattern of glob, or no regular expression of grep."""


class NotSupported(CaissonError):
    """This sandbox does not have that verb, or a part of it (`not_supported`)."""


class Timeout(CaissonError):
    """The call's time was over (`etimedout`)."""


class Cancelled(CaissonError):
    """The call was cancelled (`cancelled`)."""


class Busy(CaissonError):
    """Too much at once; later it may work (`eagain`, `ebusy`)."""


class TooLarge(CaissonError):
    """More than a call or a result may be (`efbig`, `e2big`)."""


class CommandLost(CaissonError):
    """What watched one command died; the sandbox goes on (`command_lost`)."""


class Lost(CaissonError):
    """The sandbox is gone; every later call says so too (`lost`)."""


class PolicyRefused(CaissonError):
    """The policy, what this machine has, or a person does not permit such a sandbox; nothing weaker is taken instead
    (`eperm` of stage `policy`, `TierUnavailable`, `StrictModeUnavailable`, `StrictModeRequired`, `ApprovalRequired`,
    `ApprovalDenied`)."""


class NotInstalled(CaissonError):
    """There is no caisson command to start."""


class VersionMismatch(CaissonError):
    """The caisson command and this package do not speak the same protocol."""


_CLASSES: Dict[str, Type[CaissonError]] = {
    "enoent": NotFound,
    "eexist": AlreadyExists,
    "eisdir": IsADirectory,
    "enotdir": NotADirectory,
    "enotempty": NotEmpty,
    "eacces": AccessDenied,
    "eperm": AccessDenied,
    "erofs": AccessDenied,
    "invalid": Invalid,
    "einval": Invalid,
    "invalid_pattern": InvalidPattern,
    "invalid_regex": InvalidPattern,
    "match_limit": InvalidPattern,
    "not_supported": NotSupported,
    "etimedout": Timeout,
    "cancelled": Cancelled,
    "eagain": Busy,
    "ebusy": Busy,
    "efbig": TooLarge,
    "e2big": TooLarge,
    "command_lost": CommandLost,
    "lost": Lost,
    "TierUnavailable": PolicyRefused,
    "StrictModeUnavailable": PolicyRefused,
    "StrictModeRequired": PolicyRefused,
    "ApprovalRequired": PolicyRefused,
    "ApprovalDenied": PolicyRefused,
}


def plain(data: bytes) -> str:
    """What another process said, fit to print: no control characters, no half characters."""
    text = data.decode("utf-8", "replace")
    return "".join(c if c.isprintable() else "?" for c in text)


def lines(data: bytes) -> str:
    """The same of what has several lines, as the part of a policy that would permit it: they stay lines."""
    return "\n".join(map(plain, data.strip(b"\n").split(b"\n")))


def error_of(code: str, stage: str, text: str) -> CaissonError:
    """An exception of the class for its code."""
    return _CLASSES.get(code, CaissonError)(text or code, code, stage)


def refused(code: str, stage: str, text: str) -> CaissonError:
    """Why there is no sandbox. What the policy denies is no file's permission."""
    if stage == "policy" and code in ("eperm", "eacces"):
        return PolicyRefused(text, code, stage)
    return error_of(code, stage, text)


def failed(reason: str, verb: str, text: str) -> CaissonError:
    """What a call was answered. Only the end of the stream says of a sandbox that it is lost."""
    code = {"lost": "command_lost", "timeout": "etimedout"}.get(reason, reason)
    return error_of(code, verb, text)
