"""libcaisson makes the calls of sdk/conformance and answers as its table says. tests/sdk/conformance.c calls; what is
expected is compared by the code that does it for the Python package."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import pytest

TOP = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TOP / "sdk/python/tests")]

import compare  # noqa: E402


@pytest.fixture(scope="module")
def program():
    build = os.environ.get("CAISSON_BUILD") or TOP / "build"
    path = pathlib.Path(build) / "tests/client/conformance"
    assert path.exists(), f"{path} is not built"
    return str(path)


def to_hex(item):
    """Texts and bytes as C reads them; names of keys stay."""
    if isinstance(item, (str, bytes)):
        return (item.encode() if isinstance(item, str) else item).hex()
    if isinstance(item, dict):
        return {key: to_hex(value) for key, value in item.items()}
    return [to_hex(value) for value in item] if isinstance(item, list) else item


def from_hex(item):
    if isinstance(item, str):
        return bytes.fromhex(item)
    if isinstance(item, dict):
        return {key: from_hex(value) for key, value in item.items()}
    return [from_hex(value) for value in item] if isinstance(item, list) else item


def prepared(row, told):
    args = row.get("args", {})
    if row["call"] == "open":
        args = told.options(args)
    args = to_hex(compare.ready(compare.replaced(args, told.places)))
    more = {"meanwhile": {**row["meanwhile"], "after": row["meanwhile"]["after"].encode().hex()}} if "meanwhile" in row else {}
    return {"call": row["call"], "args": args, **more}


@pytest.mark.parametrize("path", compare.stories(), ids=lambda path: path.stem)
def test_story(path, program):
    told = compare.Told(path)
    try:
        story = {"open": to_hex(told.options(told.story.get("open", {}))),
                 "rows": [prepared(row, told) for row in told.story["rows"]]}
        file = told.folder / "story.json"
        file.write_text(json.dumps(story))
        done = subprocess.run([program, str(file)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=120, encoding="utf-8")
        assert done.returncode == 0, done.stderr
        answers = [from_hex(json.loads(line)) for line in done.stdout.splitlines()]
    finally:
        told.close()
    assert len(answers) == len(told.story["rows"])
    wrong = [text for row, found in zip(told.story["rows"], answers) if (text := compare.judge(row, found))]
    assert not wrong, "\n".join(wrong)
