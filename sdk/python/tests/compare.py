"""The stories of sdk/conformance: their folders, their values, and how an answer is compared. Knows no library."""

from __future__ import annotations

import base64
import json
import pathlib
import shutil
import tempfile
from typing import Any, Callable, Dict, List, Mapping, Optional

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "conformance"
SCHEMA = "caisson.conformance/1"


class Different(AssertionError):
    """An answer is not the expected one; says where."""


def stories() -> List[pathlib.Path]:
    return sorted(FOLDER.glob("*.json"))


# ---- values -------------------------------------------------------------------------------------


def is_value(item: object) -> bool:
    return isinstance(item, str) or (isinstance(item, dict) and bool({"base64", "repeat", "join"} & set(item)))


def data(value: Any) -> bytes:
    """The bytes of a value."""
    if isinstance(value, str):
        return value.encode("utf-8")
    if "base64" in value:
        return base64.b64decode(value["base64"])
    if "repeat" in value:
        return data(value["repeat"]) * int(value["times"])
    return b"".join(data(item) for item in value["join"])


def replaced(item: Any, places: Mapping[str, str]) -> Any:
    if isinstance(item, str):
        for name, path in places.items():
            item = item.replace("{" + name + "}", path)
        return item
    if isinstance(item, dict):
        return {key: replaced(value, places) for key, value in item.items()}
    return [replaced(value, places) for value in item] if isinstance(item, list) else item


# ---- comparing ----------------------------------------------------------------------------------


def as_bytes(value: Any) -> Any:
    return value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value


def compare(expected: Any, found: Any, where: str) -> None:
    if isinstance(expected, dict) and not is_value(expected):
        matcher = next((key for key in MATCHERS if key in expected), None)
        if matcher is None:
            for key, value in expected.items():
                if key not in found:
                    raise Different(f"{where}.{key}: not there")
                compare(value, found[key], f"{where}.{key}")
            return
        for key in expected:
            if not MATCHERS[key](expected[key], found, where):
                raise Different(f"{where}: {key} {expected[key]!r:.200}, found {found!r:.300}")
    elif isinstance(expected, list):
        if not isinstance(found, list) or len(found) != len(expected):
            raise Different(f"{where}: {len(expected)} expected, found {found!r:.300}")
        for i, item in enumerate(expected):
            compare(item, found[i], f"{where}[{i}]")
    elif is_value(expected):
        if as_bytes(found) != data(expected):
            raise Different(f"{where}: {expected!r:.200} expected, found {found!r:.300}")
    elif type(expected) is not type(found) or expected != found:
        raise Different(f"{where}: {expected!r} expected, found {found!r:.300}")


def contains(expected: Any, found: Any, where: str) -> bool:
    if not isinstance(found, list):
        return data(expected) in as_bytes(found)
    for item in found:
        try:
            compare(expected, item, where)
        except Different:
            continue
        return True
    return False


MATCHERS: Dict[str, Callable[[Any, Any, str], bool]] = {
    "contains": contains,
    "length": lambda expected, found, _: len(as_bytes(found)) == expected,
    "at_least": lambda expected, found, _: found >= expected,
    "at_most": lambda expected, found, _: found <= expected,
}


# ---- stories ------------------------------------------------------------------------------------


def ready(item: Any) -> Any:
    """Arguments with values as bytes; texts stay texts."""
    if is_value(item) and not isinstance(item, str):
        return data(item)
    if isinstance(item, dict):
        return {key: ready(value) for key, value in item.items()}
    return [ready(value) for value in item] if isinstance(item, list) else item


class Told:
    """A file: its folders, and what its sandbox is opened with."""

    def __init__(self, path: pathlib.Path) -> None:
        self.story = json.loads(path.read_text(encoding="utf-8"))
        assert self.story["schema"] == SCHEMA
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="caisson-story-"))
        self.places = {name: str(self.folder / name) for name in ("workspace", "host")}
        for name in self.places:
            place = self.folder / name
            place.mkdir(mode=0o700)
            for file, content in self.story.get(name, {}).items():
                (place / file).parent.mkdir(parents=True, exist_ok=True)
                (place / file).write_bytes(data(content))
        self.policy = None
        if "policy" in self.story:
            self.policy = str(self.folder / "policy.yaml")
            pathlib.Path(self.policy).write_text(replaced(self.story["policy"], self.places), encoding="utf-8")

    def options(self, options: Mapping[str, Any]) -> Dict[str, Any]:
        """By the names of csn_options."""
        more = {"no_record": True, **replaced(dict(options), self.places)}
        mode = more.pop("mode", None)
        if mode is not None:
            more["workspace"] = f"{self.places['workspace']}:{mode}"
        if self.policy is not None:
            more.setdefault("policy", self.policy)
        return more

    def close(self) -> None:
        shutil.rmtree(self.folder)


def judge(row: Dict[str, Any], found: Dict[str, Any]) -> Optional[str]:
    """What is wrong with the answer to a row, or None."""
    try:
        if "error" in row:
            expected = dict(row["error"])
            if "says" in expected:
                expected["says"] = {"contains": expected["says"]}
            compare({"error": expected}, found, row["name"])
        elif set(found) == {"error"}:
            raise Different(f"{row['name']}: {found['error']}")
        else:
            compare(row.get("result", {}), found, row["name"])
    except Different as different:
        return str(different)
    return None
