"""How the columns of a play stand, as a table: a row per metric, and each column against one of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

import attrs

from keval.records.formats import interval, number, signed
from keval_analysis.findings.effects import Effect, is_flat
from keval_analysis.findings.formats import interval_of
from keval_analysis.findings.summary import ArmScore
from keval_report.words import display_names, with_units
from keval_viewer.play import Column, Standings


@attrs.frozen
class Standing:
    """A column's mean by one scorer, with the difference from the column that all are held against.

    `spread` is the interval of the mean, and `n` the number of questions behind it, unless it is all. `words` say that
    all questions differ alike. There is no verdict: asking on until a difference shows would give false ones.
    """

    mean: str
    spread: str = ""
    n: int | None = None
    difference: str = ""
    interval: str = ""
    words: str = ""


_Row: TypeAlias = tuple[str, Sequence[Standing]]
"""What is compared, and how each column stands."""


@attrs.frozen
class Table:
    """The columns, and a row of standings for each scorer by which they differ.

    `level` names the scorers by which all columns are the same on every question. Unless `can_tell`, no row has an
    interval, as all of them together would say nothing.
    """

    columns: Sequence[Column]
    against: str | None
    questions: int
    rows: Sequence[_Row]
    level: Sequence[str]
    can_tell: bool


def table_of(standings: Standings, columns: Iterable[Column]) -> Table:
    """Return the standings of the columns that are on or were asked."""
    can_tell = _can_tell(standings)
    if not can_tell:
        bare = (attrs.evolve(effect, ci_low=None, ci_high=None) for effect in standings.differences)
        standings = attrs.evolve(standings, differences=tuple(bare))
    asked = {f"{arm.agent}/{arm.condition}" for arm in standings.trials if arm.trials}
    shown = [column for column in columns if column.id in asked]
    names = display_names(entry.scorer for entry in standings.scorers)
    arms = {(f"{arm.agent}/{arm.condition}", arm.scorer): arm for arm in standings.arms}
    effects = {(f"{e.agent}/{e.condition}", e.scorer): e for e in standings.differences}
    rows: list[_Row] = []
    fixed: list[_Row] = []
    level: list[str] = []
    for entry in standings.scorers:
        found = [effects[column.id, entry.scorer] for column in shown if (column.id, entry.scorer) in effects]
        name = with_units(names[entry.scorer], entry.scale)
        given = [arms.get((column.id, entry.scorer)) for column in shown]
        if not any(arm and arm.mean is not None for arm in given):
            continue
        if found and all(is_flat(effect) for effect in found):
            mean = next(arm.mean for arm in given if arm and arm.mean is not None)
            level.append(f"{name} {number(mean)}")
            continue
        cells = [
            _standing(arm, effects.get((column.id, entry.scorer)), standings.questions)
            for arm, column in zip(given, shown, strict=True)
        ]
        is_fixed = found and all(effect.n > 1 and not effect.stderr for effect in found)
        (fixed if is_fixed else rows).append((name, cells))
    return Table(
        columns=shown,
        against=standings.against,
        questions=standings.questions,
        rows=[*rows, *fixed],
        level=level,
        can_tell=can_tell,
    )


def _can_tell(standings: Standings) -> bool:
    """Return whether any interval leaves out a difference that is possible: 0, or any on a scale with two ends."""
    scales = {entry.scorer: entry.scale for entry in standings.scorers}
    for effect in standings.differences:
        if effect.ci_low is None or effect.ci_high is None or not effect.stderr:
            continue
        if effect.ci_low > 0 or effect.ci_high < 0:
            return True
        scale = scales[effect.scorer]
        if effect.ci_low > scale.low - scale.high or effect.ci_high < scale.high - scale.low:
            return True
    return False


def _standing(arm: ArmScore | None, effect: Effect | None, questions: int) -> Standing:
    if arm is None or arm.mean is None:
        return Standing("–")
    spread, n = interval(arm.ci_low, arm.ci_high), arm.n if arm.n != questions else None
    standing = Standing(number(arm.mean), spread, n)
    if effect is None or effect.difference is None:
        return standing
    if is_flat(effect):
        return attrs.evolve(standing, words="the same")
    if effect.n > 1 and not effect.stderr:
        return attrs.evolve(standing, difference=signed(effect.difference), words="on every question")
    return attrs.evolve(standing, difference=signed(effect.difference), interval=interval_of(effect))
