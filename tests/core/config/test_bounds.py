"""Input that would hang, crash or use up the memory is refused, in little time."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from keval import Sample
from keval_programs.prompt import compile_template
from tests.conftest import Project

CONFIG = """
dataset: {path: questions.jsonl}
agents: {scripted: {}}
conditions: {baseline: {}}
metrics: [double/length]
"""
QUESTIONS = '{"id": "a", "question": "How?"}\n'
SAMPLE = Sample("a", "How?", facts={"cities": ["Oslo", "Rome"], "since": 1700000000})

TOO_LARGE = {
    "a text times a number": "{{ 'a' * 10**10 }}",
    "a list times a number": "{{ [1] * 10**9 }}",
    "a power": "{{ 9 ** 99999 ** 9 }}",
    "a sum that doubles": "{% set n = namespace(x='a') %}{% for i in range(99) %}{% set n.x = n.x + n.x %}{% endfor %}",
    "a joint that doubles": (
        "{% set n = namespace(x='a') %}{% for i in range(99) %}{% set n.x = n.x ~ n.x %}{% endfor %}"
    ),
    "loops in loops": "{% for a in range(99999) %}{% for b in range(99999) %}x{% endfor %}{% endfor %}",
    "loops that say nothing": "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
    "a macro that calls itself": (
        "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(30) }}"
    ),
    "the same text often": (
        "{% set s = 'a' * 99999 %}{% set y %}{% for i in range(9999) %}{{ s }}{% endfor %}{% endset %}{{ y }}"
    ),
    "a filter's width": "{{ 'a' | center(10**10) }}",
    "a method's width": "{{ 'a'.ljust(10**9) }}",
    "a format's width": "{{ '%999999999d' % 1 }}{{ '%999999999d' | format(1) }}",
    "another format's width": "{{ '{:>999999999}'.format(1) }}",
    "a long replacement": "{{ ('a' * 1000) | replace('a', 'b' * 100000) }}",
    "a long joint": "{{ range(99999) | join('a' * 100000) }}",
    "many texts": "{{ range(99999) | map('center', 100000) | list }}",
    "a filtered block": "{% filter center(10**10) %}a{% endfilter %}",
    "bytes": "{{ (1).to_bytes(10**9) }}",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", TOO_LARGE)
def test_a_prompt_that_grows_beyond_its_bounds_fails(name: str) -> None:
    began = time.monotonic()
    with pytest.raises(ValueError, match=r"for sample 'a': .*make it smaller$"):
        compile_template(TOO_LARGE[name])(SAMPLE)

    assert time.monotonic() - began < 10


@pytest.mark.parametrize("depth", ["(" * 3000, "{% if 1 %}" * 500])
def test_a_prompt_that_is_nested_too_deeply_is_not_valid(depth: str) -> None:
    with pytest.raises(ValueError, match="the template is not valid"):
        compile_template(f"{{{{ {depth}" if "(" in depth else depth)


def test_an_ordinary_prompt_is_rendered() -> None:
    text = (
        "{% for city in facts.cities %}{{ loop.index }}: {{ city | upper }}{% if not loop.last %}, {% endif %}"
        "{% endfor %}"
        " {{ 2 ** 10 * 3 }} {{ facts.since ~ '!' }} {{ '%s-%05d' % ('a', 3) }} {{ '{:>4}'.format(7) }}"
        "{% macro bold(x) %}*{{ x }}*{% endmacro %} {{ bold(facts.cities | join(', ')) }} {{ facts | tojson }}"
        " {{ [1, 2] | sum }} {{ question | replace('?', '!') }}"
    )

    rendered = compile_template(text)(SAMPLE)

    assert rendered == (
        '1: OSLO, 2: ROME 3072 1700000000! a-00003    7 *Oslo, Rome* {"cities": ["Oslo", "Rome"], "since": 1700000000}'
        " 3 How!"
    )


def test_each_rendering_may_make_as_much() -> None:
    prompt = compile_template("{{ ('a' * 900000) | length }}")

    assert ["900000"] * 9 == [prompt(SAMPLE) for _ in range(9)]


@pytest.mark.parametrize(
    "deep",
    ["[" * 30_000, "- " * 30_000, "{a: " * 30_000, "? " * 30_000, "\n".join(" " * i + "a:" for i in range(3000))],
    ids=["lists", "items", "mappings", "keys", "indents"],
)
def test_a_config_that_is_nested_too_deeply_is_refused(project: Project, deep: str) -> None:
    project.write(eval_yaml=deep)

    # In a process of its own, as the C loader would end this one.
    outcome = project.spawn("validate", "eval.yaml") if deep.startswith("[") else project.keval("validate", "eval.yaml")

    assert (2, "") == (outcome.code, outcome.stdout)
    assert "nested more than 200 levels deep; reduce the nesting" in outcome.stderr


def test_a_config_of_more_than_ten_megabytes_is_refused(project: Project) -> None:
    project.write(eval_yaml="#" * 10_000_001)

    outcome = project.keval("validate", "eval.yaml")

    assert (2, "") == (outcome.code, outcome.stdout)
    assert "cannot be read: it has more than 10000000 bytes" in outcome.stderr


def test_merges_that_unfold_to_too_much_are_refused(project: Project) -> None:
    merged = "{a: 1, b: 2}"
    for level in range(12):
        merged = f"{{<<: [&k{level} {merged}{f', *k{level}' * 9}]}}"
    project.write(eval_yaml=merged)

    outcome = project.keval("validate", "eval.yaml")

    assert (
        2,
        "error: eval.yaml:1:1: YAML aliases are recursive or expand to too much data; write the values out\n",
    ) == (
        outcome.code,
        outcome.stderr,
    )


@pytest.mark.parametrize(
    ("place", "kind"),
    [
        *((place, "pipe") for place in ("config", "dataset", "recorded", "rubric", "schema")),
        *(("config", "device"), ("dataset", "directory")),
    ],
)
def test_only_regular_files_are_read(project: Project, place: str, kind: str) -> None:
    odd = odd_file(project.root / "odd.yaml", kind)
    extra = {
        "recorded": CONFIG.replace("scripted: {}", f"old: {{type: recorded, path: {odd}}}"),
        "rubric": CONFIG + f"judges: {{j: {{type: double/judge}}}}\nrubrics: [{odd}]\n",
        "schema": CONFIG.replace("double/length", f"basic/json_schema: {{path: {odd}}}"),
        "dataset": CONFIG.replace("questions.jsonl", f"{odd}, type: jsonl"),
    }
    project.write(eval_yaml=extra.get(place, CONFIG), questions_jsonl=QUESTIONS)

    outcome = project.keval("validate", str(odd) if place == "config" else "eval.yaml")

    assert 2 == outcome.code
    assert "a directory" in outcome.stderr
    assert "odd.yaml" in outcome.stderr


def odd_file(path: Path, kind: str) -> Path:
    """Something at `path` that is no regular file."""
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        path.mkdir()
    return path
