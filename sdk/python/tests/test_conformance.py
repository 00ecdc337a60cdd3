"""One table of calls for every library: sdk/conformance."""

import json
import pathlib

import compare
import conformance
import pytest


@pytest.mark.parametrize("path", compare.stories(), ids=lambda path: path.stem)
def test_story(path: pathlib.Path) -> None:
    story = conformance.Story(path)
    try:
        rows = story.told.story["rows"]
        wrong = [text for row in rows if (text := compare.judge(row, story.answer(row)))]
    finally:
        story.close()
    assert not wrong, "\n".join(wrong)


def test_there_are_enough_rows() -> None:
    told = [json.loads(path.read_text(encoding="utf-8")) for path in compare.stories()]
    names = [[row["name"] for row in story["rows"]] for story in told]
    assert sum(map(len, names)) >= 200
    assert all(len(story) == len(set(story)) for story in names)


@pytest.mark.parametrize(
    "expected, found",
    [
        ("a", b"b"),
        ({"base64": "//4="}, b"\xff"),
        ({"contains": "x"}, b"abc"),
        ({"length": 2}, b"abc"),
        ({"at_least": 2, "at_most": 3}, 4),
        ([], [1]),
        ([{"a": 1}], [{"a": 2}]),
        ({"contains": {"a": 1}}, [{"a": 2}]),
        ({"a": None}, {"a": 0}),
        (None, False),
        (0, False),
        ({"b": 1}, {"a": 1}),
    ],
)
def test_comparing_can_fail(expected: object, found: object) -> None:
    with pytest.raises(compare.Different):
        compare.compare(expected, found, "here")
