"""Contrasts in a report: placebos, changed contexts, and tools, sections and skills ranked by what they are worth."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from keval.records.formats import interval, number, signed
from keval_analysis.findings.effects import Contrast, Effect
from keval_analysis.findings.summary import Summary
from keval_report import claims as say
from keval_report.blocks import Block, block_of, blocks, claims_of, grouped, with_costs
from keval_report.claims import Claim, Level
from keval_report.contexts import call_words, intervention_words
from keval_report.words import joined, one_line, shortened, with_interval

_MOST = 3
"""Metrics that one sentence names."""


def all_blocks(summary: Summary, level: Level = "explained") -> tuple[Block, ...]:
    """Return the blocks of a run: conditions against the baseline, what was changed of contexts, then agents."""
    found = blocks(summary, level)
    return (
        *(block for block in found if block.about != "condition"),
        *(_changed(summary, each, level) for each in summary.contrasts if each.kind != "ablation"),
        *(_ranking(summary, of, group, level) for of, group in _ablations(summary).items()),
        *(block for block in found if block.about == "condition"),
    )


def contrast_sentences(summary: Summary) -> Iterator[str]:
    """Yield what placebos and other changes say of their conditions, and which parts are missed most."""
    for contrast in summary.contrasts:
        if contrast.kind == "placebo":
            yield from _placebo(summary, contrast)
        elif contrast.kind in ("change", "revision"):
            yield _difference(summary, contrast)
    for of, group in _ablations(summary).items():
        yield from _absence(summary, of, group)


def _ablations(summary: Summary) -> dict[str, list[Contrast]]:
    """Return the contrasts that leave one part out, by the condition that has it."""
    return grouped((each for each in summary.contrasts if each.kind == "ablation"), lambda each: each.against)


def _absent(
    summary: Summary, group: Sequence[Contrast], holds: Callable[[Claim], bool]
) -> list[tuple[Contrast, list[Claim]]]:
    """Return the parts of one condition with the effects of their absence of which a statement holds.

    The part whose absence changes most comes first, as a share of a scale.
    """
    found = [(each, [claim for claim in _claims(summary, each) if holds(claim)]) for each in group]
    return sorted(found, key=lambda item: max((claim.size for claim in item[1]), default=0.0), reverse=True)


def _idle(summary: Summary, group: Sequence[Contrast]) -> list[str]:
    """Return the parts of one condition whose absence has no measured effect."""
    return [_left_out(each) for each, sure in _absent(summary, group, _is_sure) if not sure]


def _claims(summary: Summary, contrast: Contrast) -> list[Claim]:
    return claims_of(contrast.effects, summary.scorers, {summary.run: summary.arms}, lambda effect: effect.agent)


def _changed(summary: Summary, contrast: Contrast, level: Level) -> Block:
    title = f"{one_line(contrast.condition)} against {one_line(contrast.against)}"
    several = len({entry.agent for entry in summary.trials}) > 1
    spent = ((one_line(each.agent) if several else "", each) for each in contrast.expenses)
    block = with_costs(block_of(title, _claims(summary, contrast), level), spent)
    return attrs.evolve(block, remarks=(*block.remarks, ("changed", "; ".join(_words(contrast.changes)))))


def _words(changes: Mapping[str, Sequence[Mapping[str, Any]]]) -> Iterator[str]:
    for server, added in changes.items():
        told = "; ".join([*intervention_words(added), *call_words(added)])
        yield f"{one_line(server)}: {told}" if len(changes) > 1 else told


def _ranking(summary: Summary, of: str, group: Sequence[Contrast], level: Level) -> Block:
    """Return the parts of a condition, by metric, those first whose absence costs most.

    Primary metrics have rows, and others that a left-out part measurably changes; if there are neither, the first has.
    At the level `first`, parts whose absence is not measured have rows of primary metrics alone.
    """
    several, noun = len({entry.agent for entry in summary.trials}) > 1, part_noun(group)
    claims = (claim for each in group for claim in _of_part(summary, each, several=several))
    by_name = grouped(claims, lambda claim: claim.name)
    telling = [name for name, found in by_name.items() if any(_is_sure(each) or each.primary for each in found)]
    shown = telling or list(by_name)[:1]
    rows = [claim for name in shown for claim in sorted(by_name[name], key=_worth)]
    if level == "first":
        rows = [claim for claim in rows if claim.level == level or claim.primary]
    remarks: list[tuple[str, str]] = []
    if level == "explained" and (others := [name for name in by_name if name not in shown]):
        remarks.append((f"metrics that no left-out {noun} measurably changes", ", ".join(others)))
    # The effect on the questions in which a tool was called, of the tool that an arm lacks.
    where = [
        f"{claim.label} {claim.name} {with_interval(part.difference, part.ci_low, part.ci_high)} n={part.n}"
        for claim in rows
        if (part := claim.effect.where_called) is not None and say.WHERE_CALLED.holds(claim)
    ]
    if where:
        remarks.append((say.WHERE_CALLED.says.format(of=one_line(of)), "; ".join(where)))
    unmissed = _idle(summary, group)
    if unmissed and not summary.unfinished:
        remarks.append((say.PARTS_OPEN.says.format(parts=f"{noun}s"), ", ".join(unmissed)))
    title = f"{one_line(of)} without one of its {noun}s, compared with {one_line(of)}"
    return Block(title, tuple(rows), tuple(remarks), labelled=True, about="without", level=level)


def _of_part(summary: Summary, contrast: Contrast, *, several: bool) -> list[Claim]:
    def label(effect: Effect) -> str:
        return f"{contrast.left_out} ({effect.agent})" if several else str(contrast.left_out)

    # What matters of a rank is its order; how many questions would decide each is among the data.
    effects = [attrs.evolve(effect, needed_samples=None) for effect in contrast.effects]
    found = claims_of(effects, summary.scorers, {summary.run: summary.arms}, label)
    return [attrs.evolve(claim, primary=claim.effect.metric in summary.primary) for claim in found]


def _worth(claim: Claim) -> float:
    """Return how good an arm is without the part, beside the arm that has it; what is unknown comes last."""
    difference = claim.effect.difference
    if difference is None:
        return float("inf")
    return -difference if claim.scale.better == "lower" else difference


def _left_out(contrast: Contrast) -> str:
    return one_line(contrast.left_out or contrast.condition)


def part_noun(contrasts: Iterable[Contrast]) -> str:
    """Return what to call what conditions lack: tool, section or skill, or part where they lack several kinds."""
    kinds = {each.part for each in contrasts}
    return kinds.pop() if len(kinds) == 1 else "part"


def placebo_words(contrast: Contrast) -> tuple[str, str]:
    """Return where a placebo has no information, and what else than that the real context has in common with it."""
    of_text = any("text" in change for added in contrast.changes.values() for change in added)
    return ("text", "a longer prompt") if of_text else ("results", "a longer prompt and more turns")


def _placebo(summary: Summary, contrast: Contrast) -> Iterator[str]:
    """Yield what the real results or texts are worth beside those of the placebo, agent by agent."""
    real, placebo = one_line(contrast.against), one_line(contrast.condition)
    results = "; ".join(text for added in contrast.changes.values() for text in call_words(added))
    by_agent = grouped(_claims(summary, contrast), lambda claim: claim.effect.agent)
    where, beside = placebo_words(contrast)
    for agent, every in by_agent.items():
        whose = f" ({one_line(agent)})" if len(by_agent) > 1 else ""
        claims = [claim for claim in every if claim.effect.difference is not None]
        of = f"{real} compared with its placebo {placebo}{whose} ({results})"
        # An effect is that of the placebo, so a loss of it is what the real results are worth.
        for statement, sure in ((say.INFORMATION_HELPS, say.WORSE), (say.INFORMATION_HARMS, say.BETTER)):
            if found := [claim for claim in claims if sure.holds(claim)]:
                yield f"{of}: {statement.says.format(metrics=_turned(found), where=where, beside=beside)}"
        if claims and say.NO_CLEAR_INFORMATION.holds(claims):
            yield f"{of}: {say.NO_CLEAR_INFORMATION.says.format(metrics=_turned(claims), real=real, whose=whose)}"


def _is_sure(claim: Claim) -> bool:
    return say.BETTER.holds(claim) or say.WORSE.holds(claim)


def _difference(summary: Summary, contrast: Contrast) -> str:
    """Say in what a changed condition is surely better and worse than the one that it was changed from."""
    claims = _claims(summary, contrast)
    several = len({claim.label for claim in claims}) > 1
    parts = []
    for statement in (say.BETTER, say.WORSE):
        found = [claim for claim in claims if statement.holds(claim)]
        told = [
            f"{_metric(claim)} ({f'{claim.label} ' if several else ''}{signed(claim.effect.difference)})"
            for claim in found
        ]
        parts += [f"{statement.says} in {', '.join(shortened(told, _MOST))}"] if told else []
    clear = say.IS_THAN if parts else say.NO_CLEAR_DIFFERENCE
    sides = {"agent": one_line(contrast.condition), "against": one_line(contrast.against)}
    return clear.says.format(**sides, traits=" and ".join(parts), where="; ".join(_words(contrast.changes)))


def _turned(claims: Sequence[Claim]) -> str:
    """Return effects the other way round, each with its interval."""
    parts = []
    for claim in claims:
        effect = claim.effect
        low, high = (None if end is None else -end for end in (effect.ci_high, effect.ci_low))
        parts.append(f"{_metric(claim)} {with_interval(-(effect.difference or 0.0), low, high)} (n={effect.n})")
    return ", ".join(shortened(parts, _MOST))


def _absence(summary: Summary, of: str, group: Sequence[Contrast]) -> Iterator[str]:
    """Yield which parts of a condition are missed, which are in the way, the first most, and which are neither."""
    telling = False
    for statement, sure in ((say.PARTS_MISSED, say.WORSE), (say.PARTS_IN_THE_WAY, say.BETTER)):
        absent = _absent(summary, group, sure.holds)
        if told := "; ".join(f"without {_left_out(part)} {_sizes(of)} {sure.says}" for part, of in absent if of):
            telling = True
            yield statement.says.format(parts=f"{part_noun(group)}s", of=one_line(of), costs=told, gains=told)
    if idle := _idle(summary, group):
        every = f"any {part_noun(group)} of {one_line(of)} ({', '.join(idle)})"
        yield say.PARTS_NOT_MISSED.says.format(parts=joined(shortened(idle, 8), "or") if telling else every)


def _sizes(claims: Sequence[Claim]) -> str:
    sizes = ((claim, number(abs(claim.effect.difference or 0.0))) for claim in claims[:_MOST])
    ends = {id(claim): interval(claim.effect.ci_low, claim.effect.ci_high, signs=True) for claim in claims}
    return ", ".join(f"{_metric(claim)} by {size} {ends[id(claim)]}" for claim, size in sizes)


def _metric(claim: Claim) -> str:
    return f"{claim.name} ({say.EXPLORATORY.says})" if say.EXPLORATORY.holds(claim) else claim.name
