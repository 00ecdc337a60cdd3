"""Runs what nobody has read yet behind a wall, and says what it did.

    import caisson

    with caisson.Sandbox(workspace=".:rw") as sandbox:
        result = sandbox.exec("make test", timeout=60)
        print(result.termination.reason, result.exit_code, result.text)

It starts the caisson command, which has to be installed, and speaks its protocol. docs/python.md of the project walks
through it.
"""

from ._async import AsyncSandbox, AsyncStream
from ._base import PIPE, Cancel
from ._errors import (
    AccessDenied,
    AlreadyExists,
    Busy,
    CaissonError,
    Cancelled,
    CommandLost,
    Invalid,
    InvalidPattern,
    IsADirectory,
    Lost,
    NotADirectory,
    NotEmpty,
    NotFound,
    NotInstalled,
    NotSupported,
    PolicyRefused,
    Timeout,
    TooLarge,
    VersionMismatch,
)
from ._gates import Gate
from ._results import (
    Change,
    Chunk,
    Committed,
    Copied,
    Diff,
    Edited,
    Entry,
    ExecResult,
    Globbed,
    Grepped,
    Listing,
    Logs,
    Match,
    Process,
    Stat,
    Stats,
    Termination,
    Usage,
    Violation,
    Waited,
)
from ._sandbox import Sandbox, Stream

__version__ = "0.1.0"

__all__ = [
    "AccessDenied",
    "AlreadyExists",
    "AsyncSandbox",
    "AsyncStream",
    "Busy",
    "CaissonError",
    "Cancel",
    "Cancelled",
    "Change",
    "Chunk",
    "CommandLost",
    "Committed",
    "Copied",
    "Diff",
    "Edited",
    "Entry",
    "ExecResult",
    "Gate",
    "Globbed",
    "Grepped",
    "Invalid",
    "InvalidPattern",
    "IsADirectory",
    "Listing",
    "Logs",
    "Lost",
    "Match",
    "NotADirectory",
    "NotEmpty",
    "NotFound",
    "NotInstalled",
    "NotSupported",
    "PIPE",
    "PolicyRefused",
    "Process",
    "Sandbox",
    "Stat",
    "Stats",
    "Stream",
    "Termination",
    "Timeout",
    "TooLarge",
    "Usage",
    "VersionMismatch",
    "Violation",
    "Waited",
]
