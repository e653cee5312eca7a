"""Where the answers of a run are from: a recording that was replayed, or a person who asked."""

from __future__ import annotations

from collections.abc import Iterator

from keval.records.formats import counted
from keval.records.manifest import ReplayEntry
from keval_analysis.findings.summary import Summary
from keval_report.words import joined

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
    asked = f"; {_live(replay)} were made live" if _live(replay) else "; no request was sent to a model or server"
    yield f"The answers were replayed from run {replay.run}, recorded on {_date(replay)}{asked}."
    if replay.changes:
        more = len(replay.changes) - _MOST
        named = [*replay.changes[:_MOST], *([counted(more, "other change")] if more > 0 else [])]
        yield f"Changed since: {'; '.join(named).removesuffix('.')}."


def decided_on(replay: ReplayEntry | None) -> str:
    """Return what stands below the verdicts of a replayed run; nothing for another one."""
    return "" if replay is None else f"decided on replayed answers, recorded on {_date(replay)}"


def _date(replay: ReplayEntry) -> str:
    return replay.recorded[:10]


def _live(replay: ReplayEntry) -> str:
    counts = ((replay.live_trials, "trial"), (replay.live_judgements, "judgement"))
    return joined([counted(count, name) for count, name in counts if count])
