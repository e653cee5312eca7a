"""How often instructions and skills were read, in lines and as a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from keval.records.formats import number, percent, short_number
from keval_analysis.findings.summary import Activation, Summary
from keval_report.blocks import grouped
from keval_report.end_state import way_words
from keval_report.run_claims import READ_OR_NOT
from keval_report.words import display_names, one_line

HEADS = ("text", "agent", "condition", "given by", "read in trials", "of trials, 95 %", "model call", "returned by")
"""The heads of a table of texts."""
_BY_KEVAL = ("read_skill", "system prompt")
"""Ways in which keval gives a skill in place of the agent's own skills."""
_UNKNOWN = "unknown, as keval saw no model request"
_MOST = 5
"""Texts that a first report names."""


def activation_texts(summary: Summary) -> Iterator[str]:
    """Yield a line for each text that was given, but for neighbours: in which share of trials it was read."""
    shown = [each for each in _shown(summary) if each.kind != "neighbour"]
    agents, conditions = ({getattr(each, of) for each in shown} for of in ("agent", "condition"))
    texts = grouped(shown, lambda each: (each.kind, each.text))
    for (kind, name), found in islice(texts.items(), _MOST):
        alike: dict[str, list[str]] = {}
        for each in found:
            labels = [each.agent] * (len(agents) > 1) + [each.condition] * (len(conditions) > 1)
            by = f"given by keval ({each.way}), " if each.way in _BY_KEVAL else ""
            alike.setdefault(f"{by}{_share(each)}", []).append(" ".join(map(one_line, labels)))
        told = (f"{', '.join(whose)} {share}".lstrip() if len(alike) > 1 else share for share, whose in alike.items())
        yield f"{one_line(kind)} {one_line(name)} read in trials: {'; '.join(told)}"
    if len(texts) > _MOST:
        yield f"and {len(texts) - _MOST} more"


def activation_sentences(summary: Summary) -> Iterator[str]:
    """Yield how each text was given and read in each arm."""
    for each in _shown(summary):
        calls = [f"{one_line(tool)} {count}" for tool, count in each.tools.items()]
        told = [f"given {way_words(one_line(each.way))}"]
        told.append(f"read {_share(each)}" if each.rate is None else f"read in {_trials(each)} trials, {_share(each)}")
        if each.unknown and each.rate is not None:
            told.append(f"{each.unknown:,} trials left out, as keval saw no model request of theirs")
        told += [f"first in model call {short_number(each.model_call)} (median)"] if each.model_call is not None else []
        told += [f"returned by {', '.join(calls)}"] if calls else []
        yield f"{_whose(each)}: {'; '.join(told)}"


def reading_sentences(summary: Summary) -> Iterator[str]:
    """Yield the scores of trials that read a text and of the others, arm by arm."""
    names = display_names(entry.scorer for entry in summary.scorers)
    for each in _shown(summary):
        for score in filter(READ_OR_NOT.holds, each.scores):
            yield f"{_whose(each)}: " + READ_OR_NOT.says.format(
                metric=names[score.scorer],
                read=f"{number(score.read)} (n={score.read_n})",
                unread=f"{number(score.unread)} (n={score.unread_n})",
            )


def activation_rows(summary: Summary) -> Iterator[Sequence[str]]:
    """Yield the cells of a table with a row for each text and arm, below `HEADS`."""
    for each in _shown(summary):
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


def _shown(summary: Summary) -> list[Activation]:
    """Return the activations but for those of conditions that lack a part, which are told by what that is worth."""
    return [each for each in summary.activations if each.condition not in summary.ablated]


def _whose(each: Activation) -> str:
    return f"{one_line(each.kind)} {one_line(each.text)} ({one_line(each.agent)} {one_line(each.condition)})"


def _trials(each: Activation) -> str:
    return f"{each.read:,} of {each.trials - each.unknown:,}"


def _share(each: Activation) -> str:
    if each.rate is None:
        return _UNKNOWN
    ends = ""
    if each.ci_low is not None and each.ci_high is not None:
        ends = f" [{percent(each.ci_low)}, {percent(each.ci_high)}]"
    return f"{percent(each.rate)}{ends} n={each.n}"
