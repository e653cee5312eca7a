"""What a config changes about texts: placebos, sections and skills left out, other descriptions."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from markdown_it import MarkdownIt

from keval.plugin import FixedText, Intervention, InterventionError
from keval.records.interventions import Describe, Faults
from keval_skills import Instructions, Skill
from keval_skills.changes import scrambled
from keval_skills.sections import sections_of, text_without
from tests.plugins.skills.folders import skill, write

GUIDE = """\
# Contributing to Orchard

Orchard is a **service** in Python 3.12; see <https://orchard.example/docs> for `make help`.

## Setup

```bash
# Install everything
uv sync --group dev
```

## Tests

Run `pytest -q` before every commit.

### Examples

1. One test: `pytest tests/test_tree.py`
2. All of them: `pytest`

### Slow tests

~~~
# not a heading
~~~

Style
-----

| rule | value |
|------|-------|
| line | 100   |

> # a quoted heading

## Commits

### Examples

- `fix: prune branches`
"""
RULES = """\
---
description: Rules for the shop
globs: "**/*.ts"
alwaysApply: true
---
Use Strict Types. NEVER use `any`!

Datum: 2026-11-26, 12:45 Uhr; Größe 1.024 px; 価格は100円。
"""
WINDOWS = "# Build\r\n\r\nRun msbuild.\r\n\r\n# Deploy\r\n\r\nAsk Ann.\r\n"
TEXTS = {"guide": GUIDE, "rules": RULES, "windows": WINDOWS, "plain": "Answer in French.\n", "bare": "#\n\n#\nx\n"}


def instructions(tmp_path: Path, text: str) -> Instructions:
    file = tmp_path / "AGENTS.md"
    file.write_text(text, encoding="utf-8", newline="")
    return Instructions(file)


@pytest.mark.parametrize("name", TEXTS)
def test_a_placebo_has_the_length_and_the_form_of_its_text_and_none_of_its_words(name: str) -> None:
    text = TEXTS[name]

    placebo = scrambled(text)

    def form(text: str) -> list[Any]:
        tokens = MarkdownIt("commonmark").enable("table").parse(text)
        return [(token.type, token.tag, token.map, token.info) for token in tokens]

    words = {word.lower() for word in re.findall(r"[^\W\d_]{4,}", re.sub(r"(?m)^(?:```|~~~).*$|^\w+:|https", "", text))}
    assert [len(line) for line in text.splitlines()] == [len(line) for line in placebo.splitlines()]
    assert form(text) == form(placebo)
    assert re.sub(r"[^\W_]", "x", text) == re.sub(r"[^\W_]", "x", placebo)
    assert set() == words & set(re.findall(r"\w+", placebo.lower()))
    assert placebo == scrambled(text)


def test_the_form_of_a_placebo_has_languages_numbers_and_keys() -> None:
    placebo = scrambled(RULES + GUIDE)

    for kept in ("description: ", "alwaysApply: ", "```bash\n", "\n1. ", "\n2. ", "<https://"):
        assert kept in placebo
    assert "# Install" not in placebo


LINES = [
    *(
        "# Title",
        "## Setup `make`",
        "### Deep",
        "Setext",
        "===",
        "---",
        "- item",
        "  - [x] done",
        "> 1. quoted",
        "12) x",
    ),
    *(
        "```python",
        "~~~",
        "    code",
        "",
        "",
        "Words, numbers 42 and 2026-11-26.",
        "| a | b |",
        "<details>",
        "</pre>",
        "[a]: b",
    ),
    *("name: value", "ÄÖ ß İ ǅ 漢字 🎉 e\u0301", "a_b-c/d.e", "https://x.example/a?b=c#d", "\t1. tab", "&amp; \\# no"),
]


@settings(deadline=None)
@given(st.lists(st.sampled_from(LINES), max_size=30), st.sampled_from(["\n", "\r\n", "\r"]))
def test_any_placebo_has_the_sections_of_its_text_and_their_lengths(drawn: list[str], end: str) -> None:
    text = end.join(drawn)

    placebo = scrambled(text)

    sections, others = sections_of(text), sections_of(placebo)
    assert len(text) == len(placebo)
    assert [(each.level, each.start, each.end) for each in sections] == [
        (each.level, each.start, each.end) for each in others
    ]
    assert len(text) == len(text_without(text, sections)) + sum(
        len(text) - len(text_without(text, [each]))
        for index, each in enumerate(sections)
        if all(each.start >= other.end for other in sections[:index])
    )


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (GUIDE, ["Setup", "Tests", "Style", "Commits"]),
        (RULES, []),
        (WINDOWS, ["Build", "Deploy"]),
        ("# One\n\n## Two\n", ["One"]),
        ("---\n\n# A\n\n---\n\n# B\n", ["A", "B"]),
        ("# A\n## X\n# B\n## X\n## X", ["A", "B"]),
        ("## `make` **all**\n## A\n## A\n", ["make all", "A (1)", "A (2)"]),
    ],
)
def test_the_parts_of_instructions_are_their_chief_sections(tmp_path: Path, text: str, parts: list[str]) -> None:
    assert parts == [*instructions(tmp_path, text).parts()]


def test_a_section_is_left_out_with_all_that_is_in_it_and_nothing_else(tmp_path: Path) -> None:
    before, after = GUIDE.split("## Tests\n")
    after = after[after.index("Style\n") :]

    changed = instructions(tmp_path, GUIDE).changed([Intervention(without=("Tests",))])

    assert before + after == changed.text
    assert ["Setup", "Style", "Commits"] == [*changed.parts()]
    again = changed.changed([Intervention(without=("Style",)), Intervention(without=("Ex*",))])
    assert before + "## Commits\n\n" == again.text


@pytest.mark.parametrize("text", [GUIDE, WINDOWS], ids=["guide", "windows"])
def test_what_the_parts_lack_each_is_all_from_the_first_one_on(tmp_path: Path, text: str) -> None:
    provider = instructions(tmp_path, text)
    parts = provider.parts()

    lacking = [len(text) - len(provider.changed([Intervention(without=(part,))]).text) for part in parts]

    first = re.search(rf"^#+ {parts[0]}", text, re.MULTILINE)
    assert first
    assert len(text) - first.start() == sum(lacking)
    assert len(parts) == len(provider.changed([Intervention(text="scrambled")]).parts())


def test_texts_take_the_place_of_instructions(tmp_path: Path) -> None:
    provider = instructions(tmp_path, GUIDE)

    assert "" == provider.changed([Intervention(text="empty")]).text
    assert "Be brief." == provider.changed([Intervention(text=FixedText("Be brief."))]).text
    windows = instructions(tmp_path, WINDOWS).changed([Intervention(without=("Build",), text="scrambled")])
    assert scrambled(WINDOWS[WINDOWS.index("# Deploy") :]) == windows.text
    assert provider == provider.changed([])
    assert provider.digest != provider.changed([Intervention(text="empty")]).digest


HEADINGS = [
    *("Contributing to Orchard", "Setup", "Tests", "Examples (1)", "Slow tests", "Style", "Examples (2)", "Commits"),
]
WRONG: dict[str, tuple[Intervention, tuple[str | int, ...], str]] = {
    "near": (
        Intervention(without=("Setup", "Test")),
        (1, "without", 1),
        "the instructions have no section 'Test'; did you mean 'Tests'?",
    ),
    "far": (
        Intervention(without=("Nothing like it",)),
        (1, "without", 0),
        f"the instructions have no section 'Nothing like it'; headings: {', '.join(HEADINGS)}",
    ),
    "twice": (
        Intervention(without=("Examples",)),
        (1, "without", 0),
        "2 sections have the heading 'Examples'; write 'Examples (1)' or 'Examples (2)'",
    ),
    "all": (
        Intervention(without=("Contributing to Orchard",)),
        (1, "without"),
        "nothing would be left of the instructions; leave their context out instead",
    ),
    "tools": (
        Intervention(tools=("a",)),
        (1, "tools"),
        "'tools' cannot be changed of instructions, only text, without",
    ),
    "describe": (
        Intervention(describe={"x": Describe("y")}),
        (1, "describe"),
        "'describe' cannot be changed of instructions, only text, without",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_change_that_does_not_fit_instructions_is_told_at_its_place(tmp_path: Path, name: str) -> None:
    change, path, message = WRONG[name]
    text = GUIDE.replace("## Commits\n\n### Examples", "### Examples\n\n## Commits")

    with pytest.raises(InterventionError) as refused:
        instructions(tmp_path, text).changed([Intervention(), change])

    (error,) = refused.value.errors
    assert (path, message) == (error.path, error.message)


def test_skills_are_left_out_described_and_made_placebos(tmp_path: Path) -> None:
    skill(tmp_path, "pdf", description='>\n  Fills "PDF"\n  forms.')
    skill(tmp_path, "docx")
    skill(tmp_path, "docs", body="Use LibreOffice.\n")
    provider = Skill(tmp_path)

    changed = provider.changed(
        [
            Intervention(without=("doc?",)),
            Intervention(describe={"pdf": Describe('Draws "cats": #1')}, text="scrambled"),
        ]
    )

    assert ["docs", "docx", "pdf"] == [*provider.parts()]
    assert ["pdf"] == [*changed.parts()]
    (pdf,), (_, _, original) = changed.given, provider.given
    assert '---\nname: pdf\ndescription: "Draws \\"cats\\": #1"\n---\n' == pdf.head
    assert scrambled(original.body) == pdf.body
    assert ('Fills "PDF" forms.', 'Draws "cats": #1') == (original.description, pdf.description)


def test_a_change_that_does_not_fit_skills_is_told_at_its_place(tmp_path: Path) -> None:
    skill(tmp_path, "pdf")
    change = Intervention(
        without=("pdg",),
        describe={"pdf": Describe("", {}), "docx": Describe("d")},
        results="empty",
        faults=Faults(0.5),
        rename={"pdf": "p"},
        server_instructions=False,
    )

    with pytest.raises(InterventionError) as refused:
        Skill(tmp_path).changed([change])
    with pytest.raises(InterventionError, match="no skill would be left; leave the context out instead"):
        Skill(tmp_path).changed([Intervention(without=("*",))])
    with pytest.raises(InterventionError, match="a skill has no parameters"):
        Skill(tmp_path).changed([Intervention(describe={"pdf": Describe("d", {"a": "b"})})])

    only = "cannot be changed of skills, only text, without, describe"
    expected = [
        ((0, "rename"), f"'rename' {only}", True),
        ((0, "results"), f"'results' {only}", True),
        ((0, "faults"), f"'faults' {only}", True),
        ((0, "server_instructions"), f"'server_instructions' {only}", True),
        ((0, "without", 0), "there is no skill 'pdg'; did you mean 'pdf'?", False),
        (
            (0, "describe", "pdf"),
            "the skill needs a 'description': what it does and when to use it, by which agents choose it",
            False,
        ),
        ((0, "describe", "docx"), "there is no skill 'docx'; skills: pdf", True),
    ]
    assert expected == [tuple(error) for error in refused.value.errors]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "AGENTS.md: it is empty"),
        (b" \n", "AGENTS.md: it is empty"),
        ("Größe".encode("latin-1"), "AGENTS.md: it is not in UTF-8 (byte 3); save it so"),
        (b"x" * 1_000_001, "AGENTS.md: it cannot be read: it has more than 1000000 bytes"),
    ],
)
def test_a_file_without_instructions_is_refused(tmp_path: Path, content: bytes, problem: str) -> None:
    write(tmp_path)
    file = tmp_path / "AGENTS.md"
    file.write_bytes(content)

    with pytest.raises(ValueError, match=re.escape(problem)):
        Instructions(file)
