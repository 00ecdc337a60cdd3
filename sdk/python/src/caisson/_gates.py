"""Gates: functions of this program that code inside a sandbox may ask for by name.

What arrives was held against the schema by the monitor, and is still what a stranger wrote.
"""

from __future__ import annotations

import json
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple, Union

from ._errors import Invalid

RESULT_MAX = 262144
REASON_MAX = 4096


class Gate:
    """A function and what its arguments have to be: the part of JSON Schema that docs/gates.md names."""

    __slots__ = ("function", "schema")

    def __init__(self, function: Callable[..., Any], schema: Optional[Mapping[str, Any]] = None) -> None:
        self.function, self.schema = function, schema


Gates = Mapping[str, Union[Gate, Callable[..., Any]]]


def gates_of(gates: Optional[Gates]) -> Dict[str, Gate]:
    return {name: gate if isinstance(gate, Gate) else Gate(gate) for name, gate in (gates or {}).items()}


def options_of(gates: Mapping[str, Gate]) -> Optional[List[str]]:
    """As `open` takes them: NAME, or NAME=SCHEMA."""
    try:
        texts = [name if gate.schema is None else f"{name}={json.dumps(gate.schema)}" for name, gate in gates.items()]
    except (TypeError, ValueError) as error:
        raise Invalid(f"gates: a schema is no JSON: {error}", "invalid", "open") from error
    return texts or None


def arguments(data: bytes) -> Dict[str, Any]:
    """The keyword arguments of a call."""
    args = json.loads(data)
    if not isinstance(args, dict):
        raise ValueError("the arguments are no JSON object")
    return args


def answer(value: Any) -> Tuple[bytes, bool]:
    """What a function returned: text and bytes as they are, nothing for None, all else as JSON."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        data = bytes(value)
    elif isinstance(value, str):
        data = value.encode("utf-8", "surrogateescape")
    else:
        data = b"" if value is None else json.dumps(value).encode()
    if len(data) > RESULT_MAX:
        return f"the answer is longer than {RESULT_MAX} bytes".encode(), True
    return data, False


def failure(error: BaseException) -> Tuple[bytes, bool]:
    """What it raised is a value for the code that asked. No traceback: that would tell of the host."""
    return (str(error) or type(error).__name__).encode("utf-8", "replace")[:REASON_MAX], True
