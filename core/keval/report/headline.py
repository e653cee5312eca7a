"""The first line of a report: what was run."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from keval.report.figures import counted
from keval.report.lines import flowed, one_line
from keval.report.replays import origin_label
from keval.summary import Summary

__all__ = ["headline"]

_SIMULATED = "SIMULATED MODEL: shows that keval works, not what a model can do"
_SIMULATED_JUDGE = "SIMULATED JUDGE: shows that keval works, not how good an answer is"


def headline(summary: Summary, questions: int | None, width: int) -> Iterator[Text]:
    """Yield what was run: evaluation, questions × repetitions, agents, conditions; if it was simulated or replayed."""
    arms = len(summary.trials)
    parts = [one_line(summary.evaluation)]
    if questions and arms:
        often = f" × {summary.planned // (arms * questions)}" if summary.planned % (arms * questions) == 0 else ""
        parts.append(f"{counted(questions, 'question')}{often}")
    parts.append(", ".join(dict.fromkeys(one_line(entry.agent) for entry in summary.trials)))
    less = summary.ablated
    listed = [e.condition for e in summary.trials if e.condition != summary.baseline and e.condition not in less]
    others = dict.fromkeys(map(one_line, listed))
    if less:
        others[f"and {counted(len(less), 'time')} without one tool"] = None
    parts.append(" → ".join([one_line(summary.baseline), ", ".join(others)]) if others else one_line(summary.baseline))
    judges = {entry.model for entry in summary.judges.values() if entry.simulated}
    if summary.simulated:
        parts.append(_SIMULATED_JUDGE if judges >= {*summary.simulated} else _SIMULATED)
    if origin := origin_label(summary):
        parts.append(one_line(origin))
    for position, line in enumerate(flowed(parts, width)):
        text = Text(line)
        if position == 0:
            text.stylize("bold", 0, len(parts[0]))
        text.highlight_regex(r"SIMULATED (MODEL|JUDGE)|REPLAY\b|PLAY\b", "bold yellow")
        yield text
