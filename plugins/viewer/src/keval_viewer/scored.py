"""Scores as pages show them: what each scorer gave an answer, and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from keval import Judgement, Run, Scale, ScoreLine
from keval.plugin import Mark, display_names, marks_of, named_band

__all__ = ["Claim", "Shown", "Told", "shown_scores", "told_of"]


@attrs.frozen
class Shown:
    """A score: what it is called, its unit and band, and where it is between the worst and the best of its scale.

    `share` is in percent, `None` for a scale without an end and without a value. `marks` are what its metric read in
    the answer. `key` names it in a URL.
    """

    key: str
    name: str
    unit: str
    band: str
    share: float | None
    line: ScoreLine
    marks: Sequence[Mark]

    @property
    def details(self) -> Mapping[str, Any]:
        """What else the scorer told, without the marks."""
        return {name: value for name, value in self.line.score.details.items() if name != "marks"}


@attrs.frozen
class Claim:
    """What a judge could not verify, or a reply that was no judgement."""

    judge: str
    text: str


@attrs.frozen
class Told:
    """What judges told beside their scores: claims that they could not verify, and replies that were rejected."""

    claims: Sequence[Claim]
    rejected: Sequence[Claim]
    judgements: Sequence[tuple[str, Judgement]]


def shown_scores(run: Run, lines: Iterable[ScoreLine], answer: str) -> list[Shown]:
    """Return the scores of an answer as they are shown."""
    entries = {entry.scorer: entry.scale for entry in run.manifest.scorers}
    names = display_names(entries)
    found = []
    for line in lines:
        name = names.get(line.scorer, line.metric)
        key = line.metric if line.judge is None else f"{line.metric} {line.judge}"
        if line.judgement is not None and line.judgement.repetition > 1:
            name, key = (f"{each}, {line.judgement.repetition}" for each in (name, key))
        value, scale = line.score.value, entries.get(line.scorer)
        unit = scale.unit if scale is not None else ""
        found.append(
            Shown(key, name, unit, _band(line, scale), _share(value, scale), line, marks_of(line.score, answer))
        )
    return found


def told_of(lines: Iterable[ScoreLine]) -> Told:
    """Return what judges told, each judgement once, as all of its scores have it."""
    judgements = [*{(line.judge or "", line.judgement): None for line in lines if line.judgement is not None}]
    return Told(
        [Claim(judge, text) for judge, each in judgements for text in each.unverified_claims or ()],
        [Claim(judge, text) for judge, each in judgements for text in each.rejected],
        judgements,
    )


def _band(line: ScoreLine, scale: Scale | None) -> str:
    value = line.score.value
    if value is None or line.score.neutral:
        return "unscored" if value is None else "neutral"
    return (named_band(scale.bands, value) or "") if scale is not None else ""


def _share(value: float | None, scale: Scale | None) -> float | None:
    if value is None or scale is None or scale.high == float("inf"):
        return None
    share = min(1.0, max(0.0, (value - scale.low) / (scale.high - scale.low)))
    return round(100 * (1 - share if scale.better == "lower" else share), 1)
