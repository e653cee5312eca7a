"""How often instructions and skills were read, in lines and as a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from keval.findings.formats import number, percent, short_number
from keval.findings.summary import Activation, Summary
from keval.report.blocks import grouped
from keval.report.claims import READ_OR_NOT
from keval.report.words import display_names, one_line

HEADS = ("text", "agent", "condition", "given by", "read in trials", "of trials, 95 %", "model call", "returned by")
"""The heads of a table of texts."""
_OF_OTHERS = ("read_skill", "system prompt")
"""Ways in which keval gives a skill in place of the agent's own skills."""


def activation_texts(summary: Summary) -> Iterator[str]:
    """Yield a line for each text that was given, but for neighbours: in which share of trials it was read."""
    shown = [each for each in summary.activations if each.kind != "neighbour" and each.condition not in summary.ablated]
    agents, conditions = ({getattr(each, of) for each in shown} for of in ("agent", "condition"))
    for (kind, name), found in grouped(shown, lambda each: (each.kind, each.text)).items():
        parts = []
        for each in found:
            labels = [each.agent] * (len(agents) > 1) + [each.condition] * (len(conditions) > 1)
            by = f"given by keval ({each.way}), " if each.way in _OF_OTHERS else ""
            parts.append(f"{' '.join(map(one_line, labels))} {by}{_share(each)}".lstrip())
        yield f"{one_line(kind)} {one_line(name)} read in trials: {'; '.join(parts)}"


def activation_sentences(summary: Summary) -> Iterator[str]:
    """Yield how each text was given and read in each arm, and the scores of trials that read it and of the others."""
    names = display_names(entry.scorer for entry in summary.scorers)
    for each in summary.activations:
        calls = [f"{one_line(tool)} {count}" for tool, count in each.tools.items()]
        told = [f"given {'in the' if each.way == 'system prompt' else 'by'} {one_line(each.way)}"]
        told.append(f"read in {_trials(each)} trials, {_share(each)}")
        told += [f"{each.unknown:,} trials whose model requests keval did not see left out"] if each.unknown else []
        told += [f"first in model call {short_number(each.model_call)} (median)"] if each.model_call is not None else []
        told += [f"returned by {', '.join(calls)}"] if calls else []
        whose = f"{one_line(each.kind)} {one_line(each.text)} ({one_line(each.agent)} {one_line(each.condition)})"
        yield f"{whose}: {'; '.join(told)}"
        for score in filter(READ_OR_NOT.holds, each.scores):
            yield f"{whose}: " + READ_OR_NOT.says.format(
                metric=names[score.scorer],
                read=f"{number(score.read)} (n={score.read_n})",
                unread=f"{number(score.unread)} (n={score.unread_n})",
            )


def activation_rows(summary: Summary) -> Iterator[Sequence[str]]:
    """Yield the cells of a table with a row for each text and arm, below `HEADS`."""
    for each in summary.activations:
        yield (
            f"{one_line(each.kind)} {one_line(each.text)}",
            one_line(each.agent),
            one_line(each.condition),
            one_line(each.way),
            _trials(each),
            _share(each),
            "–" if each.model_call is None else short_number(each.model_call),
            ", ".join(f"{one_line(tool)} {count}" for tool, count in each.tools.items()) or "–",
        )


def _trials(each: Activation) -> str:
    return f"{each.read:,} of {each.trials - each.unknown:,}"


def _share(each: Activation) -> str:
    if each.rate is None:
        return "unknown, as keval saw no model request"
    ends = ""
    if each.ci_low is not None and each.ci_high is not None:
        ends = f" [{percent(each.ci_low)}, {percent(each.ci_high)}]"
    return f"{percent(each.rate)}{ends} n={each.n}"
