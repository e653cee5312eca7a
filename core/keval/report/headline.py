"""The first line of a report: what was run, and from which recording its answers are."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from keval.records.manifest import ReplayEntry
from keval.records.summary import Summary
from keval.report.figures import counted
from keval.report.lines import flowed, folded, joined, one_line

_MOST = 6
"""Changes that a sentence names; the others are counted."""


def replay_label(replay: ReplayEntry) -> str:
    """Return what stands beside the title of a replayed run."""
    live = f"; {_live(replay)} live" if _live(replay) else ""
    return f"REPLAY: answers recorded {_date(replay)}{live}"


def origin_label(summary: Summary) -> str:
    """Return what stands beside the title of a run that was replayed, or played; empty for any other one."""
    if summary.play:
        return "PLAY: a person asked the questions"
    return "" if summary.replay is None else replay_label(summary.replay)


def replay_sentences(replay: ReplayEntry | None) -> Iterator[str]:
    """Yield from which recording the answers are, which are not, and what changed since; nothing without a replay."""
    if replay is None:
        return
    asked = f", except {_live(replay)}, made live" if _live(replay) else "; no model and no server was asked"
    yield f"The answers were replayed from run {replay.run}, recorded on {_date(replay)}{asked}."
    if replay.changes:
        more = len(replay.changes) - _MOST
        named = [*replay.changes[:_MOST], *([counted(more, "other change")] if more > 0 else [])]
        yield f"Changed since: {'; '.join(named).removesuffix('.')}."


def replay_lines(replay: ReplayEntry | None, width: int) -> Iterator[Text]:
    """Yield the sentences as lines of a terminal."""
    for sentence in replay_sentences(replay):
        yield from (Text(line, "yellow") for line in folded(one_line(sentence), width))


def decided_on(replay: ReplayEntry | None) -> str:
    """Return what stands below the verdicts of a replayed run; nothing for another one."""
    return "" if replay is None else f"decided on a replay of answers recorded {_date(replay)}"


def _date(replay: ReplayEntry) -> str:
    return replay.recorded[:10]


def _live(replay: ReplayEntry) -> str:
    counts = ((replay.live_trials, "trial"), (replay.live_judgements, "judgement"))
    return joined([counted(count, name) for count, name in counts if count])


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
