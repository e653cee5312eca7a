"""Which conditions differ in one thing: found in what a manifest says of their servers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import pytest

from keval.records.manifest import AgentEntry, ConditionEntry, DatasetEntry, Manifest, ServerEntry, TextEntry
from keval_analysis.stats.contrasts import contrasts_of

TOOLS = ("search", "open")
WITHOUT: Mapping[str, Any] = {"without": ["open"]}
SCRAMBLED: Mapping[str, Any] = {"results": "scrambled"}
TERSE: Mapping[str, Any] = {"describe": {"search": {"description": "Finds."}}}
RENAMED: Mapping[str, Any] = {"rename": {"search": "find"}}


def server(*changes: Mapping[str, Any], tools: tuple[str, ...] = TOOLS, original: str = "a") -> ServerEntry:
    return ServerEntry(
        tools, "b" if changes else original, interventions=changes, original_sha256=original if changes else None
    )


def manifest(prompts: Mapping[str, str] | None = None, config: Any = None, **conditions: ServerEntry) -> Manifest:
    entries = {label: ConditionEntry((label,), {"docs": entry}) for label, entry in conditions.items()}
    return Manifest(
        run="r",
        evaluation="e",
        config={
            "conditions": {
                label: {"system_prompt": (prompts or {}).get(label), "contexts": [label]} for label in entries
            },
            **(config or {}),
        },
        config_folder="/",
        dataset=DatasetEntry("questions.jsonl"),
        agents={"ada": AgentEntry("ada")},
        conditions={"baseline": ConditionEntry(), **entries},
        trials=1,
        baseline="baseline",
    )


def found(told: Manifest) -> list[tuple[str, str, str, str | None]]:
    return [(each.kind, each.condition, each.against, each.left_out) for each in contrasts_of(told)]


def test_each_kind_is_known_by_what_was_added() -> None:
    told = manifest(
        docs=server(),
        terse=server(TERSE),
        placebo=server(SCRAMBLED),
        one=server(WITHOUT, tools=("search",)),
        none=server({"tools": ["nothing"]}, tools=()),
        mute=server({**SCRAMBLED, "server_instructions": False}),
    )

    assert [
        ("change", "terse", "docs", None),
        ("placebo", "placebo", "docs", None),
        ("ablation", "one", "docs", "open"),
        ("change", "none", "docs", None),
        ("change", "mute", "docs", None),
    ] == found(told)


def test_a_condition_is_held_against_the_nearest_one_that_it_was_changed_from() -> None:
    told = manifest(docs=server(), both=server(TERSE, RENAMED), terse=server(TERSE), other=server(RENAMED))

    assert {
        ("change", "both", "terse", None),
        ("change", "terse", "docs", None),
        ("change", "other", "docs", None),
    } == set(found(told))
    assert {"docs": [RENAMED]} == next(each.changes for each in contrasts_of(told) if each.condition == "both")


@pytest.mark.parametrize(
    "told",
    [
        manifest({"placebo": "Another prompt."}, docs=server(), placebo=server(SCRAMBLED)),
        manifest(docs=server(), placebo=server(SCRAMBLED, original="other tools")),
        manifest(docs=server(), again=server()),
        manifest(docs=server(TERSE), placebo=server(SCRAMBLED, TERSE)),
    ],
    ids=["prompt", "server", "nothing", "order"],
)
def test_conditions_that_differ_in_anything_else_are_no_contrast(told: Manifest) -> None:
    assert [] == found(told)


def test_what_ablate_made_is_known_by_name_also_where_a_whole_context_is_left_out() -> None:
    made = {"ablated": {"docs": {"open": "less", "search": "bare"}}}
    told = manifest(config=made, docs=server(), less=server(WITHOUT, tools=("search",)), bare=server())

    assert [("ablation", "less", "docs", "open"), ("ablation", "bare", "docs", "search")] == found(told)


def test_sections_and_skills_are_parts_and_a_scrambled_text_is_a_placebo() -> None:
    def texts(label: str, *changes: Mapping[str, Any], parts: tuple[str, ...], part: str = "section") -> ConditionEntry:
        return ConditionEntry((label,), texts={label: TextEntry(part, parts=parts, interventions=changes)})

    without: Mapping[str, Any] = {"without": ["Style"]}
    told = attrs.evolve(
        manifest(
            config={
                "contexts": {
                    "rules": {"type": "instructions"},
                    "noise": {"from": "rules", "text": "scrambled"},
                    "less": {"from": "rules", **without},
                    "skills": {"type": "skill"},
                    "one": {"from": "skills", "without": ["pdf"]},
                },
                "ablated": {"rules": {"Build": "rules without Build"}, "skills": {"pdf": "skills without pdf"}},
            }
        ),
        conditions={
            "rules": texts("rules", parts=("Build", "Style")),
            "noise": texts("noise", {"text": "scrambled"}, parts=("Build", "Style")),
            "less": texts("less", without, parts=("Build",)),
            "rules without Build": texts("rules without Build", {"without": ["Build"]}, parts=("Style",)),
            "skills": texts("skills", parts=("pdf", "csv"), part="skill"),
            "skills without pdf": texts("one", {"without": ["pdf"]}, parts=("csv",), part="skill"),
        },
        baseline="rules",
    )

    assert [
        ("placebo", "noise", "rules", None, "tool"),
        ("ablation", "less", "rules", "Style", "section"),
        ("ablation", "rules without Build", "rules", "Build", "section"),
        ("ablation", "skills without pdf", "skills", "pdf", "skill"),
    ] == [(each.kind, each.condition, each.against, each.left_out, each.part) for each in contrasts_of(told)]
