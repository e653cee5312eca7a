"""Contrasts in a report: what a placebo says of its condition, and which tools are missed."""

from __future__ import annotations

from typing import Any

import attrs

from keval.records.scores import Scale
from keval_analysis.findings.effects import Arm, Contrast, Effect, Part, PartialEffect, Verdict
from keval_analysis.findings.summary import ScorerScale, Summary
from keval_report.contrasts import all_blocks, contrast_sentences

SCORERS = (ScorerScale("acme/right", None, Scale()), ScorerScale("acme/delay", None, Scale(better="lower")))


def effect(
    condition: str, difference: float, verdict: Verdict, metric: str = "acme/right", agent: str = "ada"
) -> Effect:
    return Effect(
        metric,
        None,
        agent,
        condition,
        Arm(agent, "docs", "r"),
        20,
        difference,
        0.05,
        run="r",
        mean=0.5,
        against_mean=0.5 - difference,
        ci_low=difference - 0.1,
        ci_high=difference + 0.1,
        verdict=verdict,
    )


def summary(*contrasts: Contrast, agents: tuple[str, ...] = ("ada",)) -> Summary:
    trials: Any = tuple(_Trials(agent) for agent in agents)
    return Summary("r", "e", "baseline", "omit", 20, scorers=SCORERS, trials=trials, contrasts=contrasts)


class _Trials:
    def __init__(self, agent: str) -> None:
        self.agent = agent


def placebo(*effects: Effect, results: Any = "scrambled") -> Contrast:
    return Contrast("placebo", "sham", "docs", {"docs": [{"results": results}]}, effects=effects)


def lacking(name: str, *effects: Effect, part: Part = "tool") -> Contrast:
    changes = {"docs": [{"without": [name]}]}
    return Contrast("ablation", f"docs without {name}", "docs", changes, name, part, effects=effects)


def test_a_placebo_that_does_worse_shows_that_it_is_the_information() -> None:
    told = summary(placebo(effect("sham", -0.4, "worse"), effect("sham", 0.02, "unclear", "acme/delay")))

    (said,) = contrast_sentences(told)
    figures = "right +0.40 [+0.30, +0.50] (n=20)"
    meaning = "The information in the results helps, beyond the effect of a longer prompt and more turns."
    assert f"docs compared with its placebo sham (results are scrambled): {figures}. {meaning}" == said


def test_a_placebo_that_does_as_well_leaves_it_open_agent_by_agent() -> None:
    same = effect("sham", -0.05, "unclear")
    better = effect("sham", 0.3, "better", agent="bob")

    same_said, better_said = contrast_sentences(
        summary(placebo(same, better, results={"fixed": "No."}), agents=("ada", "bob"))
    )

    results = "(every result is 'No.')"
    open_ = "right +0.05 [-0.05, +0.15] (n=20). This run shows no clear difference between docs and its placebo (ada)."
    harm = (
        "right -0.30 [-0.40, -0.20] (n=20). The placebo scores better on these metrics, so the information in the"
        " results does harm."
    )
    assert f"docs compared with its placebo sham (ada) {results}: {open_}" == same_said
    assert f"docs compared with its placebo sham (bob) {results}: {harm}" == better_said


def test_tools_are_ranked_by_what_their_absence_costs() -> None:
    told = summary(
        lacking("idle", effect("i", 0.05, "unclear"), effect("i", 0.0, "unclear", "acme/delay")),
        lacking("some", effect("s", -0.2, "worse"), effect("s", 0.01, "unclear", "acme/delay")),
        lacking("vital", effect("v", -0.6, "worse"), effect("v", 0.0, "unclear", "acme/delay")),
    )

    (block,) = all_blocks(told)
    said = [*contrast_sentences(told)]

    assert "docs without one of its tools, compared with docs" == block.title
    assert ["vital", "some", "idle"] == [claim.label for claim in block.claims]
    assert (
        ("metrics that no left-out tool measurably changes", "delay"),
        ("this run cannot tell what leaving out these tools changes", "idle"),
    ) == block.remarks
    vital = "without vital right by 0.60 [-0.70, -0.50] worse"
    some = "without some right by 0.20 [-0.30, -0.10] worse"
    assert [
        f"Leaving out these tools of docs makes scores worse: {vital}; {some}.",
        "This run cannot tell what leaving out idle changes.",
    ] == said


def test_a_part_that_is_in_the_way_is_told_from_one_without_effect() -> None:
    told = summary(
        lacking("idle", effect("i", 0.0, "unclear"), part="skill"),
        lacking("misleading", effect("m", 0.4, "better"), part="skill"),
    )

    (block,) = all_blocks(told)

    assert ("this run cannot tell what leaving out these skills changes", "idle") in block.remarks
    assert [
        "Leaving out these skills of docs makes scores better: without misleading right by 0.40 [+0.30, +0.50] better.",
        "This run cannot tell what leaving out idle changes.",
    ] == [*contrast_sentences(told)]


def test_where_less_is_better_a_rise_is_what_a_tool_is_missed_for() -> None:
    told = summary(
        lacking("slow", effect("s", -0.3, "better", "acme/delay")),
        lacking("quick", effect("q", 0.3, "worse", "acme/delay")),
    )

    (block,) = all_blocks(told)

    assert ["quick", "slow"] == [claim.label for claim in block.claims]


def test_without_a_sure_effect_the_first_metric_has_rows_all_the_same() -> None:
    told = summary(
        lacking("one", effect("o", 0.0, "unclear"), effect("o", 0.0, "unclear", "acme/delay")),
        lacking("two", effect("t", -0.1, "unclear"), effect("t", 0.0, "unclear", "acme/delay")),
        agents=("ada", "bob"),
    )

    (block,) = all_blocks(told)

    assert [("right", "two (ada)"), ("right", "one (ada)")] == [(claim.name, claim.label) for claim in block.claims]
    assert ["This run cannot tell what leaving out any tool of docs (one, two) changes."] == [*contrast_sentences(told)]


def test_a_change_has_a_block_of_its_own_that_says_what_was_changed() -> None:
    changes: Any = {"docs": [{"describe": {"search": {"description": "Finds."}}}, {"rename": {"search": "find"}}]}
    told = summary(Contrast("change", "terse", "docs", changes, effects=(effect("terse", 0.2, "better"),)))

    (block,) = all_blocks(told)

    remark = ("changed", "other words for search; search is named find")
    assert ("terse against docs", remark) == (block.title, block.remarks[-1])
    said = [*contrast_sentences(told)]
    assert ["terse is better in right (+0.20) than docs (other words for search; search is named find)."] == said


def test_a_change_without_a_sure_effect_is_said_to_have_none() -> None:
    changes: Any = {"docs": [{"server_instructions": False}]}
    effects = (effect("mute", 0.01, "unclear"), effect("mute", 0.0, "same", "acme/delay"))

    said = [*contrast_sentences(summary(Contrast("change", "mute", "docs", changes, effects=effects)))]

    assert ["No clear difference between mute and docs (the server's instructions are hidden)."] == said


def test_sections_are_called_so_and_parts_of_several_kinds_parts() -> None:
    style = lacking("Style", effect("s", -0.2, "worse"), part="section")
    build = lacking("Build", effect("b", 0.01, "unclear"), part="section")
    tool = lacking("search", effect("t", 0.0, "unclear"))

    (block,) = all_blocks(summary(style, build))
    (mixed,) = all_blocks(summary(style, tool))

    assert "docs without one of its sections, compared with docs" == block.title
    assert (("this run cannot tell what leaving out these sections changes", "Build"),) == block.remarks
    assert "docs without one of its parts, compared with docs" == mixed.title
    assert [
        "Leaving out these sections of docs makes scores worse: without Style right by 0.20 [-0.30, -0.10] worse.",
        "This run cannot tell what leaving out Build changes.",
    ] == [*contrast_sentences(summary(style, build))]


def test_a_placebo_of_a_text_tells_of_the_text() -> None:
    sham = Contrast(
        "placebo", "sham", "docs", {"rules": [{"text": "scrambled"}]}, effects=(effect("sham", -0.4, "worse"),)
    )

    (said,) = contrast_sentences(summary(sham))

    assert said.startswith("docs compared with its placebo sham (the text is scrambled): right +0.40")
    assert said.endswith("The information in the text helps, beyond the effect of a longer prompt.")


def test_a_primary_metric_has_rows_and_the_effect_where_the_tool_was_called_stands_beside_them() -> None:
    """Of twelve questions, four need the tool: over all of them its absence decides nothing."""
    where = PartialEffect(4, -0.75, -1.0, -0.5)
    of = [
        attrs.evolve(effect("without", -0.25, "unclear"), where_called=where),
        effect("without", 0.1, "unclear", "acme/delay"),
    ]
    told = attrs.evolve(summary(lacking("search", *of)), primary=("acme/right",))

    (block,) = (block for block in all_blocks(told, "first") if block.about == "without")

    assert ["right"] == [claim.name for claim in block.claims]
    assert ("this run cannot tell what leaving out these tools changes", "search") in block.remarks
    assert (
        "only the questions in which docs called the tool (chosen by the data)",
        "search right -0.75 [-1.00, -0.50] n=4",
    ) in block.remarks
