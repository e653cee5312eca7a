"""The pictures of the documentation are drawn from real runs, and need nothing from elsewhere to be shown."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from docs.pictures.render import PICTURES, draw, printed
from tests.conftest import Project

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "pictures"
EVALUATION = """
    dataset: {path: questions.jsonl}
    agents: {logged: {type: recorded, path: answers.jsonl}}
    metrics: [basic/equals, basic/turns]
"""


def text(svg: str) -> str:
    """What a picture says, without its styles."""
    root = ElementTree.fromstring(svg)
    return "\n".join(element.text or "" for element in root.findall(".//{*}text")).replace("\N{NO-BREAK SPACE}", " ")


def elsewhere(svg: str) -> list[str]:
    """What a picture would fetch, run or embed; raises ParseError when it is no XML."""
    foreign = ("script", "image", "use", "a", "foreignObject", "iframe", "link")
    found = re.findall(r"url\((?!#)[^)]*\)|@import\b.*", svg)
    for element in ElementTree.fromstring(svg).iter():
        found += [element.tag] if element.tag.rpartition("}")[2] in foreign else []
        content = [*element.attrib.values(), element.text or ""]
        found += [value for value in content if re.search(r"\w://|^//|data:|javascript:", value)]
        found += [name for name in element.attrib if name.rpartition("}")[2] in ("href", "src")]
    return found


def test_a_run_is_drawn_as_it_printed(project: Project) -> None:
    project.write(
        eval_yaml=EVALUATION,
        questions_jsonl='{"id": "q", "question": "How much is 6 × 7?", "answer": "42"}',
        answers_jsonl='{"id": "q", "response": "42", "model_calls": 1}',
    )

    svg = draw("small", ["run", "eval.yaml"], printed(["run", "eval.yaml"], project.root))

    said = text(svg)
    assert [] == elsewhere(svg)
    assert "$ \nkeval run eval.yaml" in said
    assert ["equals", "1.00", "n=1", "1 trial, none failed"] == [
        shown for shown in ("equals", "1.00", "n=1", "1 trial, none failed") if shown in said
    ]


def test_the_same_output_is_the_same_picture() -> None:
    first, second = (draw("same", ["list"], "\x1b[1mbold\x1b[0m & <plain>") for _ in range(2))

    assert first == second
    assert "& <plain>" in text(first)


@pytest.mark.parametrize("name", sorted(PICTURES))
def test_a_picture_needs_nothing_from_elsewhere(name: str) -> None:
    assert [] == elsewhere((FOLDER / f"{name}.svg").read_text(encoding="utf-8"))


def test_every_figure_that_the_readme_says_of_its_picture_is_in_it() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    pictures = re.findall(r"!\[([^\]]+)\]\(([^)]+\.svg)\)", readme)

    assert 2 == len(pictures)
    for said, path in pictures:
        shown = text((ROOT / path).read_text(encoding="utf-8"))
        figures = re.findall(r"[+-]?\d+\.\d\d|±\d+\.\d\d|n=\d+|\d+ of \d+ trials", said)
        assert figures
        assert [] == [figure for figure in figures if figure not in shown]
