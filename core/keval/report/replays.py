"""What is said of a replayed run: from which recording its answers are, and what changed since."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from keval.manifest import ReplayEntry
from keval.report.figures import counted
from keval.report.lines import folded, joined, one_line
from keval.summary import Summary

__all__ = ["decided_on", "origin_label", "replay_label", "replay_lines", "replay_sentences"]

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
