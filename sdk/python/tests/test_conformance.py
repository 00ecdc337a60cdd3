"""One table of calls for every library: sdk/conformance."""

import pathlib

import conformance
import pytest


@pytest.mark.parametrize("path", conformance.stories(), ids=lambda path: path.stem)
def test_story(path: pathlib.Path) -> None:
    story = conformance.Story(path)
    wrong = []
    try:
        names = [row["name"] for row in story.told["rows"]]
        assert len(names) == len(set(names))
        for row in story.told["rows"]:
            try:
                story.check(row)
            except conformance.Different as different:
                wrong.append(str(different))
    finally:
        story.close()
    assert not wrong, "\n".join(wrong)


def test_there_are_enough_rows() -> None:
    assert len(conformance.stories()) >= 6


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
    with pytest.raises(conformance.Different):
        conformance.compare(expected, found, "here")
