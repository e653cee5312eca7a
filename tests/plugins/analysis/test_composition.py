"""What a run was made of, and in which parts two runs differ."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import attrs
import pytest

from keval import Run
from keval.records.manifest import AgentEntry, ConditionEntry, DatasetEntry, Manifest, TextEntry
from keval_analysis.composition import Difference, changed_parts, parts_of, what_differs

MANIFEST = Manifest(
    run="20260101-000000-aaaa",
    evaluation="support",
    config={
        "agents": {"one": {"type": "openai", "model": "simulated/docs", "temperature": 0.2}},
        "contexts": {"docs": {"type": "stdio", "command": "python"}, "unused": {"type": "stdio", "command": "bash"}},
        "conditions": {"with_docs": {"contexts": ["docs"], "system_prompt": "Be brief."}},
        "execution": {"num_repetitions": 1, "retry": {"max_attempts": 3}},
    },
    config_folder=".",
    dataset=DatasetEntry("q.jsonl", "0" * 64, 6),
    agents={"one": AgentEntry("openai", "simulated/docs")},
    conditions={"with_docs": ConditionEntry(("docs",))},
    trials=6,
    baseline="with_docs",
    variables={"HOST": "a.example"},
)


def of(manifest: Manifest) -> Run:
    """A run without a directory, whose texts are what they are referred to by."""
    return cast("Run", SimpleNamespace(manifest=manifest, blob=str.encode))


def test_a_part_is_told_once_and_what_is_not_set_is_not_told() -> None:
    found = parts_of(MANIFEST)

    assert {"one": "simulated/docs"} == found["model of agent"]
    assert {"with_docs": "Be brief."} == found["prompt of"]
    assert {} == found["answers of agent"]
    options = {"agents.one.type": "openai", "agents.one.temperature": "0.2"}
    assert {**options, "contexts.docs.type": "stdio", "contexts.docs.command": "python"} == found["option"]


@pytest.mark.parametrize(
    ("section", "change", "told"),
    [
        (
            "agents",
            {"one": {"type": "openai", "temperature": 0.7}},
            Difference("option agents.one.temperature", "0.7", "0.2"),
        ),
        (
            "contexts",
            {"docs": {"type": "stdio", "command": "node"}},
            Difference("option contexts.docs.command", "node", "python"),
        ),
        ("execution", {"num_repetitions": 1}, Difference("execution retry.max_attempts", "none", "3")),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_config_that_sets_something_else_is_told_at_its_path(
    section: str, change: dict[str, object], told: Difference
) -> None:
    now = attrs.evolve(MANIFEST, config={**MANIFEST.config, section: change})

    assert [told] == [*what_differs(of(now), of(MANIFEST), {"one": "one"})]


def test_a_variable_that_has_another_value_is_told() -> None:
    now = attrs.evolve(MANIFEST, variables={"HOST": "b.example"})

    assert [Difference("variable HOST", "b.example", "a.example")] == [
        *what_differs(of(now), of(MANIFEST), {"one": "one"})
    ]


def test_agents_of_other_names_are_held_against_each_other() -> None:
    config = {**MANIFEST.config, "agents": {"two": {"type": "openai", "temperature": 0.7}, "three": {"type": "ms"}}}
    agents = {"two": AgentEntry("openai", "simulated/docs"), "three": AgentEntry("ms")}
    now = attrs.evolve(MANIFEST, config=config, agents=agents)

    found = [*what_differs(of(now), of(MANIFEST), {"two": "one"})]

    assert [Difference("agent", "two", "one"), Difference("option agents.two.temperature", "0.7", "0.2")] == found


def given(sha256: str, **texts: str) -> Manifest:
    """A run with a context of skills, which it keeps, or as of before runs kept them."""
    entry = TextEntry("skill", sha256, ("filing", *texts), texts=texts)
    return attrs.evolve(MANIFEST, conditions={"with_docs": ConditionEntry(("docs",), texts={"docs": entry})})


@pytest.mark.parametrize(
    ("before", "now", "told"),
    [
        (given("a" * 64, b="Be."), given("b" * 64, b="Do."), ["text of b of docs under with_docs"]),
        # Another file of the skill, a skill that is new, and an older run, are told by names and digests.
        (given("a" * 64, b="Be."), given("b" * 64, b="Be."), ["parts of docs under with_docs"]),
        (given("a" * 64, b="Be."), given("b" * 64, b="Be.", c="See."), ["parts of docs under with_docs"]),
        (given("a" * 64), given("b" * 64, b="Be."), ["parts of docs under with_docs"]),
        (given("a" * 64, b="Be."), given("a" * 64, b="Be."), []),
    ],
)
def test_texts_of_contexts_are_told_by_their_words_where_both_runs_have_them(
    before: Manifest, now: Manifest, told: list[str]
) -> None:
    assert told == [each.what for each in what_differs(of(now), of(before), {"one": "one"})]


def test_a_history_tells_texts_by_their_digests() -> None:
    found = changed_parts(parts_of(given("b" * 64, b="Do.")), parts_of(given("a" * 64, b="Be.")))

    assert [("parts of", "docs under with_docs")] == [(each.kind, each.name) for each in found]
