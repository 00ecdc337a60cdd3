"""The verbs: from arguments to calls. Both clients make theirs here, so a verb is written once."""

from __future__ import annotations

import os
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, Union

from . import _results as results
from ._core import MORE_S, PIECE, PULL, Call, Op
from ._errors import Invalid
from ._term import Atom

Text = Union[str, bytes]
Path = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]
Command = Union[str, bytes, Sequence[Text]]
OnViolation = Callable[[results.Violation], object]

READ_MAX = 64 << 20


def _bytes(value: object, what: str) -> bytes:
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if isinstance(value, str):
        try:
            value = value.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            raise Invalid(f"{what} has half a character in it", "invalid", what) from None
    if not isinstance(value, (bytes, bytearray, memoryview)):
        raise TypeError(f"{what} is a {type(value).__name__}; expected str or bytes")
    return bytes(value)


def _text(value: object, what: str) -> bytes:
    data = _bytes(value, what)
    if b"\0" in data:
        raise Invalid(f"{what} has a zero byte in it", "invalid", what)
    return data


def _set(args: Dict[str, Any], key: str, value: object, make: Callable[[Any, str], Any] = _text) -> None:
    if value is not None:
        args[key] = make(value, key)


def _number(value: Any, key: str) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{key} is a {type(value).__name__}; expected int")
    if not 0 <= value < 2**63:
        raise Invalid(f"{key} is out of range: {value}", "invalid", key)
    return value


def _ms(seconds: Optional[float]) -> Optional[int]:
    if seconds is None:
        return None
    if not seconds > 0:
        raise Invalid("timeout is more than 0 seconds; None is no timeout", "invalid", "timeout")
    return max(1, min(int(seconds * 1000), 31536000000))


def _nothing(_: Mapping[str, Any], __: "Call[None]") -> None:
    return None


# ---- commands -----------------------------------------------------------------------------------


def input_of(stdin: object) -> object:
    """None, bytes, or PULL for what has to be asked for its next piece."""
    if stdin is None or stdin is PULL:
        return stdin
    if isinstance(stdin, (str, bytes, bytearray, memoryview)):
        return _bytes(stdin, "stdin")
    return PULL


def exec_args(
    command: Command,
    cwd: Optional[Path],
    env: Optional[Mapping[str, Text]],
    timeout: Optional[float],
    tty: Optional[Tuple[int, int]],
) -> Dict[str, Any]:
    args: Dict[str, Any] = {}
    if isinstance(command, (str, bytes)):
        args["command"] = _text(command, "command")
    else:
        args["argv"] = [_text(word, "argv") for word in command]
    _set(args, "cwd", cwd)
    if env is not None:
        args["env"] = {_text(name, "env"): _text(value, "env") for name, value in env.items()}
        for key in args["env"]:
            if not key or b"=" in key:
                raise Invalid(f"env: {key!r} is no name of a variable", "invalid", "exec")
    _set(args, "timeout_ms", _ms(timeout), _number)
    if tty is not None:
        args.update(tty=True, rows=_number(tty[0], "rows"), cols=_number(tty[1], "columns"))
    return args


def exec(
    command: Command,
    *,
    cwd: Optional[Path] = None,
    env: Optional[Mapping[str, Text]] = None,
    stdin: object = None,
    timeout: Optional[float] = None,
    tty: Optional[Tuple[int, int]] = None,
    keep: int = results.KEEP_DEFAULT,
    on_violation: Optional[OnViolation] = None,
) -> Op[results.ExecResult]:
    args = exec_args(command, cwd, env, timeout, tty)
    source = input_of(stdin)
    if source is not None:
        args["stdin"] = True
    keeper = results.Keeper(keep)
    return Op(
        "exec",
        args,
        lambda reply, call: results.exec_result(reply, keeper, call.is_late),
        input=source,
        sink=keeper,
        timeout_s=timeout,
        more_s=MORE_S,
        on_violation=on_violation,
    )


def start(
    command: Command, *, tag: Text, cwd: Optional[Path] = None, env: Optional[Mapping[str, Text]] = None
) -> Op[results.ExecResult]:
    args = exec_args(command, cwd, env, None, None)
    args.update(detach=True, tag=_text(tag, "tag"))
    keeper = results.Keeper(1)
    return Op("exec", args, lambda reply, call: results.exec_result(reply, keeper, False), sink=keeper)


def ps() -> Op[Tuple[results.Process, ...]]:
    return Op("ps", {}, lambda reply, _: results.ps_result(reply))


def logs(tag: Text, *, follow: bool = False, keep: int = results.KEEP_DEFAULT) -> Op[results.Logs]:
    args: Dict[str, Any] = {"tag": _text(tag, "tag")}
    if follow:
        args["follow"] = True
    keeper = results.Keeper(keep)
    return Op("logs", args, lambda reply, _: results.logs_result(reply, keeper), sink=keeper)


def wait(
    tag: Text,
    *,
    port: Optional[int] = None,
    line: Optional[Text] = None,
    text: Optional[Text] = None,
    timeout: Optional[float] = None,
    forget: bool = False,
) -> Op[results.Waited]:
    args: Dict[str, Any] = {"tag": _text(tag, "tag")}
    _set(args, "port", port, _number)
    _set(args, "line", line)
    _set(args, "text", text)
    _set(args, "timeout_ms", _ms(timeout), _number)
    if forget:
        args["forget"] = True
    return Op("wait", args, lambda reply, _: results.wait_result(reply), timeout_s=timeout, more_s=MORE_S)


def kill(tag: Text, signal: Optional[int] = None) -> Op[None]:
    args: Dict[str, Any] = {"tag": _text(tag, "tag")}
    _set(args, "signal", signal, _number)
    return Op("kill", args, _nothing)


# ---- files --------------------------------------------------------------------------------------


def _read_args(path: Path, offset: int, length: Optional[int]) -> Dict[str, Any]:
    args: Dict[str, Any] = {"path": _text(path, "path")}
    if offset:
        args["offset"] = _number(offset, "offset")
    _set(args, "length", length, _number)
    return args


def read(path: Path, *, offset: int = 0, length: Optional[int] = None, timeout: Optional[float] = None) -> Op[bytes]:
    args = _read_args(path, offset, length)
    most = READ_MAX if length is None else length
    whole = results.Whole(most, os.fsdecode(args["path"]))

    def build(reply: Mapping[str, Any], _: "Call[bytes]") -> bytes:
        whole.add("stdout", reply.get("bytes", b""))
        return b"".join(whole.pieces)

    return Op("read", args, build, sink=whole, timeout_s=timeout)


def read_pieces(path: Path, *, offset: int = 0, length: Optional[int] = None) -> Op[bytes]:
    """Read as a stream; the result is the last piece."""
    return Op("read", _read_args(path, offset, length), lambda reply, _: reply.get("bytes", b""))


def write(path: Path, content: object, *, mode: Optional[int] = None, timeout: Optional[float] = None) -> Op[None]:
    args: Dict[str, Any] = {"path": _text(path, "path")}
    _set(args, "mode", mode, _number)
    source = input_of(content)
    if isinstance(source, bytes) and len(source) <= PIECE:
        args["bytes"] = source
        source = None
    else:
        args["stdin"] = True
    return Op("write", args, _nothing, input=source, timeout_s=timeout)


def edit(path: Path, old: Text, new: Text, *, timeout: Optional[float] = None) -> Op[results.Edited]:
    args = {"path": _text(path, "path"), "old": _bytes(old, "old"), "new": _bytes(new, "new")}
    return Op(
        "edit",
        args,
        lambda reply, _: results.Edited(reply["occurrences"], reply.get("content")),
        timeout_s=timeout,
    )


def stat(path: Path) -> Op[results.Stat]:
    return Op("stat", {"path": _text(path, "path")}, lambda reply, _: results.stat_result(reply))


def list_(path: Path) -> Op[results.Listing]:
    return Op("list", {"path": _text(path, "path")}, lambda reply, _: results.list_result(reply))


def remove(path: Path, recursive: bool) -> Op[None]:
    args: Dict[str, Any] = {"path": _text(path, "path")}
    if recursive:
        args["recursive"] = True
    return Op("remove", args, _nothing)


def move(path: Path, to: Path) -> Op[None]:
    return Op("move", {"path": _text(path, "path"), "to": _text(to, "to")}, _nothing)


# ---- search -------------------------------------------------------------------------------------


def glob(
    pattern: Text, *, cwd: Optional[Path] = None, limit: Optional[int] = None, timeout: Optional[float] = None
) -> Op[results.Globbed]:
    args: Dict[str, Any] = {"pattern": _text(pattern, "pattern")}
    _set(args, "cwd", cwd)
    _set(args, "limit", limit, _number)
    _set(args, "timeout_ms", _ms(timeout), _number)
    return Op("glob", args, lambda reply, _: results.glob_result(reply), timeout_s=timeout, more_s=MORE_S)


def grep(
    pattern: Text,
    path: Optional[Path] = None,
    *,
    glob: Optional[Text] = None,
    ignore_case: bool = False,
    limit: Optional[int] = None,
    context: Optional[int] = None,
    timeout: Optional[float] = None,
) -> Op[results.Grepped]:
    args: Dict[str, Any] = {"pattern": _text(pattern, "pattern")}
    _set(args, "path", path)
    _set(args, "glob", glob)
    if ignore_case:
        args["case_sensitive"] = False
    _set(args, "limit", limit, _number)
    _set(args, "context", context, _number)
    _set(args, "timeout_ms", _ms(timeout), _number)
    return Op("grep", args, lambda reply, _: results.grep_result(reply), timeout_s=timeout, more_s=MORE_S)


# ---- the workspace ------------------------------------------------------------------------------


def mount(host: Path, at: Path, writable: bool) -> Op[None]:
    args: Dict[str, Any] = {"host": os.path.abspath(_text(host, "host")), "at": _text(at, "at")}
    if writable:
        args["mode"] = Atom("rw")
    return Op("mount", args, _nothing)


def _paths(paths: Optional[Iterable[Path]]) -> Dict[str, Any]:
    return {} if paths is None else {"paths": [_text(path, "paths") for path in paths]}


def diff(paths: Optional[Iterable[Path]], names_only: bool, keep: int, timeout: Optional[float]) -> Op[results.Diff]:
    args = _paths(paths)
    if names_only:
        args["names_only"] = True
    keeper = results.Keeper(keep)
    return Op("diff", args, lambda reply, _: results.diff_result(reply, keeper), sink=keeper, timeout_s=timeout)


def commit(
    paths: Optional[Iterable[Path]], force: bool, dry_run: bool, timeout: Optional[float]
) -> Op[results.Committed]:
    args = _paths(paths)
    args.update({key: True for key, value in (("force", force), ("dry_run", dry_run)) if value})
    return Op("commit", args, lambda reply, _: results.commit_result(reply), timeout_s=timeout)


def snapshot(tag: Text) -> Op[results.Copied]:
    return Op("snapshot", {"tag": _text(tag, "tag")}, lambda reply, _: results.copied(reply))


def fork(name: Text, tag: Optional[Text]) -> Op[results.Copied]:
    args: Dict[str, Any] = {"name": _text(name, "name")}
    _set(args, "tag", tag)
    return Op("fork", args, lambda reply, _: results.copied(reply))


def stats() -> Op[results.Stats]:
    return Op("stats", {}, lambda reply, _: results.stats_result(reply))


# ---- options ------------------------------------------------------------------------------------

Texts = Union[Sequence[Text], Mapping[str, Optional[Text]]]


def _options(value: object, key: str) -> List[bytes]:
    """A list as it is; a mapping as NAME=VALUE, or NAME alone for None."""
    if isinstance(value, Mapping):
        pairs = ((_text(name, key), item) for name, item in value.items())
        return [name if item is None else name + b"=" + _text(_plain(item), key) for name, item in pairs]
    if isinstance(value, (str, bytes)) or not isinstance(value, Sequence):
        raise TypeError(f"{key} is a {type(value).__name__}; expected a list")
    return [_text(item, key) for item in value]


def _plain(item: object) -> object:
    return str(item) if isinstance(item, (int, float)) and not isinstance(item, bool) else item


_LISTS = frozenset(("allow", "mounts", "limits", "env", "tags", "gates"))


def open_args(options: Mapping[str, Any]) -> Dict[str, Any]:
    """The map of {open, Ref, Map}. Nothing is read or decided here; the monitor does, and refuses with a sentence."""
    args: Dict[str, Any] = {}
    for key, value in options.items():
        if key == "no_record":
            args.update({"record": False} if value else {})
        elif value is not None:
            args[key] = _options(value, key) if key in _LISTS else _text(value, key)
    return args
