"""The lines that explain a report: what may be hidden in its figures, and what would make them surer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from rich.text import Text

from keval.cli.console import safe
from keval.records.formats import interval, number, signed
from keval_analysis.claims import UnverifiedClaim
from keval_analysis.findings.summary import Summary
from keval_report.activation import activation_sentences, reading_sentences
from keval_report.averages import average_lines
from keval_report.blocks import grouped
from keval_report.claims import EXPLORATORY
from keval_report.reviews import anchor_lines, claim_lines, judging_lines, review_lines
from keval_report.run_claims import DIFFERS_BY_AGENT, DOES_MORE, PRIMARY_WOULD, Difference
from keval_report.terminal.tools import sharing_lines, tool_lines
from keval_report.totals import compliance_lines
from keval_report.words import display_names, with_interval

_DUST = 1e-12
"""A variance below this is rounding."""


def explanation_lines(summary: Summary, claims: Sequence[UnverifiedClaim], width: int) -> Iterator[Text]:
    """Yield the lines, each as long as it is; `claims` are those that judges could not verify."""
    yield from _interactions(summary)
    power = summary.family_power
    if power is not None and PRIMARY_WOULD.holds(summary):
        seen = (number(100 * each, 0) for each in (power.power, power.primary_power))
        yield Text(PRIMARY_WOULD.says.format(power.comparisons, *seen), "dim")
    yield from _advice(summary)
    yield from _neutral(summary)
    yield from tool_lines(summary)
    yield from map(safe, activation_sentences(summary))
    yield from map(safe, reading_sentences(summary))
    yield from compliance_lines(summary)
    yield from _per_protocol(summary)
    yield from map(safe, judging_lines(summary))
    yield from map(safe, anchor_lines(summary))
    yield from claim_lines(claims, width)
    yield from map(safe, review_lines(summary))
    yield from map(safe, average_lines(summary))
    yield from sharing_lines(summary)


def _interactions(summary: Summary) -> Iterator[Text]:
    """Yield for which agent a condition does more than for another, where that is sure."""
    names = display_names(entry.scorer for entry in summary.scorers)
    scales = {entry.scorer: entry.scale for entry in summary.scorers}
    told: dict[str, list[str]] = {}
    for found in summary.interactions:
        about = Difference(found, scales[found.scorer].better, summary.unfinished)
        first = ((found.difference or 0.0) > 0) == (about.better == "higher")
        more, less = (found.agent, found.against_agent) if first else (found.against_agent, found.agent)
        ends = (found.ci_low, found.ci_high) if first else (found.ci_high, found.ci_low)
        apart = [None if each is None else each if first else -each for each in (found.difference or 0.0, *ends)]
        by = f"{names[found.scorer]} by {with_interval(*apart)} (n={found.n})"
        if DOES_MORE.holds(about):
            heading = DOES_MORE.says.format(condition=found.condition, more=more, less=less)
        elif DIFFERS_BY_AGENT.holds(about):
            heading = DIFFERS_BY_AGENT.says.format(condition=found.condition)
            by += f": {found.agent} {signed(found.effect)}, {found.against_agent} {signed(found.against_effect)}"
        else:
            continue
        told.setdefault(f"{EXPLORATORY.says}: {heading}", []).append(by)
    for heading, metrics in told.items():
        yield safe(f"{heading}: {'; '.join(metrics)}")


def _advice(summary: Summary) -> Iterator[Text]:
    """Yield the advice that most metrics have, on what would make the intervals narrower, with the first's reason."""
    names = display_names(entry.scorer for entry in summary.scorers)
    known = [
        entry
        for entry in summary.variance
        if max(entry.question or 0.0, entry.repetition or 0.0, entry.judging or 0.0) > _DUST
    ]
    for advice, count in Counter(entry.advice.partition(":")[0] for entry in known).most_common(1):
        first = next(entry for entry in known if entry.advice.partition(":")[0] == advice)
        whose = (
            f" ({names[first.scorer]}; the same advice for {count} of {len(known)} metrics)" if len(known) > 1 else ""
        )
        yield safe(f"{first.advice.removesuffix('.')}{whose}.")


def _neutral(summary: Summary) -> Iterator[Text]:
    """Yield how many scores of each metric are neutral in each arm."""
    names = display_names(entry.scorer for entry in summary.scorers)
    told: list[str] = []
    whole: list[str] = []
    for name, entries in grouped(summary.arms, lambda entry: names[entry.scorer]).items():
        counts = [(entry.neutral, entry.scored + entry.neutral + entry.unscored) for entry in entries]
        if not any(neutral for neutral, _ in counts):
            continue
        if all(neutral == of for neutral, of in counts):
            whole.append(name)
        elif len(totals := {of for _, of in counts}) == 1:
            told.append(f"{name} {', '.join(str(neutral) for neutral, _ in counts)} of {totals.pop()}")
        else:
            told.append(f"{name} {', '.join(f'{neutral} of {of}' for neutral, of in counts)}")
    of_arms = bool(told)
    told += [f"all of {', '.join(whole)}"] if whole else []
    if told:
        use = "included in" if summary.neutral == "count" else "excluded from"
        labels = dict.fromkeys(f"{entry.agent} {entry.condition}" for entry in summary.arms)
        where = f" ({', '.join(labels)})" if of_arms and len(labels) > 1 else ""
        yield safe(f"neutral scores (nothing to judge), {use} the means{where}: {'; '.join(told)}", "dim")


def _per_protocol(summary: Summary) -> Iterator[Text]:
    """Yield the effects among the trials that complied, beside those of all trials."""
    names = display_names(entry.scorer for entry in summary.scorers)
    several = len({entry.agent for entry in summary.trials}) > 1
    told: dict[str, list[str]] = {}
    for effect in summary.effects:
        found = effect.per_protocol
        if effect.kind != "condition" or found is None or found.difference is None or effect.difference is None:
            continue
        whose = f" ({effect.agent})" if several else ""
        ends = interval(found.ci_low, found.ci_high, signs=True)
        told.setdefault(effect.condition, []).append(
            f"{names[effect.scorer]}{whose} {signed(found.difference)} {ends} n={found.n}"
            f" in place of {signed(effect.difference)}"
        )
    for condition, metrics in told.items():
        yield safe(
            f"{condition}: the rows above include all trials (intention to treat). With only the trials that used tools"
            f" as required (per protocol; biased, because these trials are not a random sample): {'; '.join(metrics)}",
            "yellow",
        )
