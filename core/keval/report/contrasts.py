"""Contrasts in a report: placebos, changed contexts, and tools ranked by what their absence costs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from keval.records.effects import Contrast, Effect
from keval.records.summary import Summary
from keval.report.claims import Block, Claim, block_of, blocks, claims_of, costs, grouped
from keval.report.contexts import call_words, intervention_words
from keval.report.words import display_names, interval, joined, number, one_line, signed

_MOST = 3
"""Metrics, or tools, that one sentence names."""
_SURE = ("better", "worse")


def all_blocks(summary: Summary) -> tuple[Block, ...]:
    """Return the blocks of a run: conditions against the baseline, what was changed of contexts, then agents."""
    found = blocks(summary)
    conditions = [block for block in found if block.about != "condition"]
    agents = [block for block in found if block.about == "condition"]
    changed = [_changed(summary, each) for each in summary.contrasts if each.kind != "ablation"]
    return (
        *conditions,
        *changed,
        *(_ranking(summary, of, group) for of, group in _ablations(summary).items()),
        *agents,
    )


def contrast_sentences(summary: Summary) -> Iterator[str]:
    """Yield what placebos and other changes say of their conditions, and which tools are missed most."""
    for contrast in summary.contrasts:
        if contrast.kind == "placebo":
            yield from (f"{worth.of}: {worth.told}" for worth in _placebo(summary, contrast))
        elif contrast.kind == "change":
            yield _difference(summary, contrast)
    for of, group in _ablations(summary).items():
        yield from _absence(summary, of, group)


def _ablations(summary: Summary) -> dict[str, list[Contrast]]:
    """Return the contrasts that leave one tool out, by the condition that has it."""
    return grouped((each for each in summary.contrasts if each.kind == "ablation"), lambda each: each.against)


def _missed(summary: Summary, group: Sequence[Contrast]) -> list[tuple[Contrast, list[Effect]]]:
    """Return the tools of one condition with the effects of their absence that are surely for the worse.

    The tool whose absence costs most comes first, as a share of a scale.
    """
    found = [(each, [effect for effect in each.effects if effect.verdict == "worse"]) for each in group]

    def most(item: tuple[Contrast, list[Effect]]) -> float:
        claims = claims_of(item[1], summary.scorers, {}, lambda effect: effect.agent)
        return max((claim.size for claim in claims), default=0.0)

    return sorted(found, key=most, reverse=True)


def _changed(summary: Summary, contrast: Contrast) -> Block:
    claims = claims_of(contrast.effects, summary.scorers, {summary.run: summary.arms}, lambda effect: effect.agent)
    block = block_of(f"{one_line(contrast.condition)} against {one_line(contrast.against)}", claims, {})
    several = len({entry.agent for entry in summary.trials}) > 1
    remarks = [*block.remarks, *costs(contrast.expenses, several=several)]
    remarks.append(("changed", "; ".join(_words(contrast.changes))))
    if contrast.kind == "placebo":
        found = _placebo(summary, contrast)
        remarks += [(f"effect of the information{worth.agent}", worth.told) for worth in found]
    return attrs.evolve(block, remarks=tuple(remarks))


def _words(changes: Mapping[str, Sequence[Mapping[str, Any]]]) -> Iterator[str]:
    for server, added in changes.items():
        told = "; ".join([*intervention_words(added), *call_words(added)])
        yield f"{one_line(server)}: {told}" if len(changes) > 1 else told


def _ranking(summary: Summary, of: str, group: Sequence[Contrast]) -> Block:
    """Return the tools of a condition, by metric, those first whose absence costs most.

    Metrics that no left-out tool measurably changes have no rows, unless none is changed: then the first has.
    """
    several = len({entry.agent for entry in summary.trials}) > 1
    claims = (claim for each in group for claim in _of_tool(summary, each, several=several))
    by_name = grouped(claims, lambda claim: claim.name)
    telling = [name for name, found in by_name.items() if any(claim.effect.verdict in _SURE for claim in found)]
    shown = telling or list(by_name)[:1]
    rows = [claim for name in shown for claim in sorted(by_name[name], key=_worth)]
    remarks: list[tuple[str, str]] = []
    if others := [name for name in by_name if name not in shown]:
        remarks.append(("metrics that no left-out tool measurably changes", ", ".join(others)))
    if unmissed := [_tool(each) for each, worse in _missed(summary, group) if not worse]:
        remarks.append(("tools with no measured effect", ", ".join(unmissed)))
    title = f"{one_line(of)} without one of its tools, compared with {one_line(of)}"
    return Block(title, tuple(rows), tuple(remarks), labelled=True, about="without")


def _of_tool(summary: Summary, contrast: Contrast, *, several: bool) -> list[Claim]:
    def label(effect: Effect) -> str:
        return f"{contrast.tool} ({effect.agent})" if several else str(contrast.tool)

    # What matters of a rank is its order; how many questions would decide each is among the data.
    effects = [attrs.evolve(effect, needed=None) for effect in contrast.effects]
    return claims_of(effects, summary.scorers, {summary.run: summary.arms}, label)


def _worth(claim: Claim) -> float:
    """Return how good an arm is without the tool, beside the arm that has it; what is unknown comes last."""
    difference = claim.effect.difference
    if difference is None:
        return float("inf")
    return -difference if claim.scale.better == "lower" else difference


def _tool(contrast: Contrast) -> str:
    return one_line(contrast.tool or contrast.condition)


@attrs.frozen
class _Worth:
    """What the real results are worth to one agent, beside those of a placebo: of what, how much, and what that says.

    `agent` is empty where there is only one.
    """

    of: str
    agent: str
    told: str


def _placebo(summary: Summary, contrast: Contrast) -> Iterator[_Worth]:
    """Yield what the real results are worth beside those of the placebo, agent by agent."""
    names = display_names(entry.scorer for entry in summary.scorers)
    real, placebo = one_line(contrast.against), one_line(contrast.condition)
    results = "; ".join(text for added in contrast.changes.values() for text in call_words(added))
    agents = dict.fromkeys(effect.agent for effect in contrast.effects)
    for agent in agents:
        whose = f" ({one_line(agent)})" if len(agents) > 1 else ""
        effects = [e for e in contrast.effects if e.agent == agent and e.difference is not None]
        # An effect is that of the placebo, so a loss of it is what the real results are worth.
        helped = [effect for effect in effects if effect.verdict == "worse"]
        harmed = [effect for effect in effects if effect.verdict == "better"]
        of = f"{real} compared with its placebo {placebo}{whose} ({results})"
        if helped:
            meaning = "The information in the results helps, beyond the effect of a longer prompt and more turns."
            yield _Worth(of, whose, f"{_turned(helped, names)}. {meaning}")
        if harmed:
            meaning = "The placebo scores better on these metrics, so the information in the results does harm."
            yield _Worth(of, whose, f"{_turned(harmed, names)}. {meaning}")
        if effects and not (helped or harmed):
            meaning = f"This run shows no clear difference between {real} and its placebo{whose}."
            yield _Worth(of, whose, f"{_turned(effects, names)}. {meaning}")


def _difference(summary: Summary, contrast: Contrast) -> str:
    """Say in what a changed condition is surely better and worse than the one that it was changed from."""
    names = display_names(entry.scorer for entry in summary.scorers)
    several = len({effect.agent for effect in contrast.effects}) > 1
    parts = []
    for verdict in _SURE:
        found = [effect for effect in contrast.effects if effect.verdict == verdict]
        told = [
            f"{names[effect.scorer]} ({f'{one_line(effect.agent)} ' if several else ''}{signed(effect.difference)})"
            for effect in found[:_MOST]
        ]
        more = [f"{len(found) - _MOST} more"] if len(found) > _MOST else []
        parts += [f"{verdict} in {', '.join([*told, *more])}"] if told else []
    changed, before = one_line(contrast.condition), one_line(contrast.against)
    words = "; ".join(_words(contrast.changes))
    if parts:
        return f"{changed} is {' and '.join(parts)} than {before} ({words})."
    return f"No clear difference between {changed} and {before} ({words})."


def _turned(effects: Sequence[Effect], names: Mapping[Any, str]) -> str:
    """Return effects the other way round, each with its interval."""
    parts = []
    for effect in effects[:_MOST]:
        difference = -(effect.difference or 0.0)
        ends = [None if end is None else -end for end in (effect.ci_high, effect.ci_low)]
        told = interval(ends[0], ends[1], signs=True)
        parts.append(f"{names[effect.scorer]} {signed(difference)}{f' [{told}]' if told else ''} (n={effect.n})")
    more = [f"{len(effects) - _MOST} more"] if len(effects) > _MOST else []
    return ", ".join([*parts, *more])


def _absence(summary: Summary, of: str, group: Sequence[Contrast]) -> Iterator[str]:
    """Yield which tools of a condition are missed, the most missed first, and which are not."""
    names = display_names(entry.scorer for entry in summary.scorers)
    ranked = _missed(summary, group)
    costly = [(each, worse) for each, worse in ranked if worse]
    if costly:
        told = "; ".join(_costs(costly, names))
        yield f"Leaving out these tools of {one_line(of)} makes scores worse: {told}."
    if idle := [_tool(each) for each, worse in ranked if not worse]:
        which = _or(idle) if costly else f"any tool of {one_line(of)} ({', '.join(idle)})"
        yield f"Leaving out {which} has no clear effect in this run."


def _costs(costly: Iterable[tuple[Contrast, list[Effect]]], names: Mapping[Any, str]) -> Iterator[str]:
    for each, worse in costly:
        told = ", ".join(
            f"{names[effect.scorer]} by {number(abs(effect.difference or 0.0))}"
            f" [{interval(effect.ci_low, effect.ci_high, signs=True)}]"
            for effect in worse[:_MOST]
        )
        yield f"without {_tool(each)} {told} worse"


def _or(parts: Sequence[str]) -> str:
    shown = [*parts[:8], f"{len(parts) - 8} more"] if len(parts) > 8 else list(parts)
    return joined(shown, "or")
