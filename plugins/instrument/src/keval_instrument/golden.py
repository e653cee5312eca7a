"""Whether golden answers get the best score, and damaged ones a worse one: the examination `golden`."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

import attrs

from keval import Run
from keval.records.formats import counted, percent, short_number
from keval.records.manifest import ScorerEntry
from keval.records.scores import Scorer
from keval_analysis.stats.intervals import Values, mean_intervals
from keval_instrument.check_folder import Material
from keval_instrument.damages import CONDITIONS, GOLDEN
from keval_instrument.findings import FEWEST, Defect, Examined, Figure, gradings_of, scorer_name, sources_of
from keval_report.words import one_line

FIGURES: Mapping[str, str] = {
    "golden": "The share of golden answers that a scorer gives the best score.",
    "detection": "The share of damaged answers that a scorer gives a worse score than the golden answer.",
    "drop": "How much worse a damaged answer is scored than the golden one, on average.",
    "false_alarm": "The share of answers that say the same as the golden one and are scored worse.",
    "noticed": "The share of damaged answers that at least one scorer gives a worse score than the golden answer.",
    "unscored": "How many answers a scorer gave no score, or had nothing to judge in.",
}
_ALARMING = 0.1
"""The share of answers scored worse though they say the same, above which a scorer reads the form, not the facts."""
_LONGEST = 160
"""Characters of a scorer's reason."""


@attrs.frozen
class _Scored:
    """What one scorer gave, by condition and sample: the mean over its gradings. `reasons` are those of golden answers.

    `unscored` counts answers without a score that counts, and `excuse` is the commonest reason for it.
    """

    entry: ScorerEntry
    kind: str
    needs_answer: bool
    values: Mapping[str, Mapping[str, float]]
    reasons: Mapping[str, str]
    unscored: int
    excuse: str

    @property
    def name(self) -> str:
        return scorer_name(self.entry.scorer)

    @property
    def top(self) -> float | None:
        """The best score; `None` if the scale has no end, and where golden answers are what it compares with."""
        scale = self.entry.scale
        if math.isinf(scale.high) or self.kind == "preference":
            return None
        return scale.high if scale.better == "higher" else scale.low

    @property
    def same(self) -> float | None:
        """The one score that it gives every answer; `None` if it gives several."""
        # Means of equal gradings may differ by rounding.
        given = {round(value, 9) for by_sample in self.values.values() for value in by_sample.values()}
        return given.pop() if len(given) == 1 else None

    @property
    def is_telling(self) -> bool:
        """Whether it is about answers: it is a judge, or it gave answers to one question different scores."""
        drops = [drop for condition in CONDITIONS for drop in self.drops(condition).values()]
        differs = not drops or any(abs(drop) > 1e-9 for drop in drops)
        return not self.entry.of_agent and (self.entry.judge is not None or differs)

    def drops(self, condition: str) -> dict[str, float]:
        """Return how much worse than the golden one each answer of a condition was scored, by sample."""
        golden, sign = self.values.get(GOLDEN, {}), 1 if self.entry.scale.better == "higher" else -1
        given = self.values.get(condition, {})
        return {sample: sign * (golden[sample] - value) for sample, value in given.items() if sample in golden}

    def noticed(self, condition: str) -> dict[str, float]:
        """Return 1 for each answer of a condition that was scored worse than the golden one, and 0 for the others."""
        return {sample: float(drop > 1e-9) for sample, drop in self.drops(condition).items()}

    def at_top(self) -> dict[str, float]:
        """Return 1 for each golden answer with the best score; without one, with none worse than any made of it."""
        golden, top = self.values.get(GOLDEN, {}), self.top
        if top is not None:
            return {sample: float(abs(value - top) <= 1e-9) for sample, value in golden.items()}
        # Without an end of the scale, nothing else says what the best score is.
        drops = [self.drops(condition) for condition in CONDITIONS]
        return {sample: float(all(each.get(sample, 0.0) >= -1e-9 for each in drops)) for sample in golden}


@attrs.frozen
class _Row:
    """A figure to be: its values by sample, and the ends of their scale."""

    name: str
    of: Mapping[str, str]
    values: Mapping[str, float]
    low: float = 0.0
    high: float = 1.0
    unit: str = "share"


def examine(material: Material) -> Examined:
    """Hold the scores of golden answers against those of what was made of them. Raises RunError."""
    run = material.damaged
    if run is None:
        return Examined("golden", reason=material.reasons.get("damaged", "there is no run of damaged answers"))
    scored = _scored(run)
    if not any(each.values.get(GOLDEN) for each in scored):
        why = next((f"; {each.name}: {each.excuse}" for each in scored if each.excuse), "")
        return Examined("golden", reason=f"no golden answer was scored{why}")
    telling = [each for each in scored if each.values.get(GOLDEN) and each.is_telling]
    rows = [row for each in telling for row in _rows(each)]
    rows += [_Row("noticed", {"damage": condition}, values) for condition, values in _noticed(telling).items()]
    figures = _figures(rows, sources_of(run))
    for each in scored:
        of, n = {"scorer": each.name}, len(each.values.get(GOLDEN, {}))
        if each.entry.of_agent:
            figures.append(Figure("golden", of, None, n, reason="it is about the agent, not about the answer"))
        elif not n:
            figures.append(Figure("golden", of, None, n, reason=f"it scored no golden answer: {each.excuse}"))
        elif each not in telling:
            told = "it gives all answers to a question the same score: it is not about the answer"
            figures.append(Figure("golden", of, None, n, reason=told))
        if each.unscored and not each.entry.of_agent:
            figures.append(Figure("unscored", of, float(each.unscored), each.unscored, unit="count"))
    defects = [defect for each in telling for defect in _defects(each, figures)]
    return Examined("golden", tuple(figures), (*_unnoticed_kinds(telling), *defects))


def _scored(run: Run) -> list[_Scored]:
    gradings, manifest = gradings_of(run), run.manifest
    reasons: defaultdict[Scorer, dict[str, str]] = defaultdict(dict)
    excuses: defaultdict[Scorer, Counter[str]] = defaultdict(Counter)
    for line in run.scores():
        if line.condition == GOLDEN and line.score.reason:
            reasons[line.scorer].setdefault(line.sample, line.score.reason)
        if line.score.value is None or (line.score.neutral and manifest.neutral == "omit"):
            excuses[line.scorer][line.score.reason] += 1
    found = []
    for entry in manifest.scorers:
        values: defaultdict[str, defaultdict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
        for answer, given in gradings.get(entry.scorer, {}).items():
            values[answer.condition][answer.sample] += given
        means = {
            condition: {sample: math.fsum(given) / len(given) for sample, given in by_sample.items()}
            for condition, by_sample in values.items()
        }
        rubric = manifest.rubrics.get(entry.rubric or "")
        excuse = excuses[entry.scorer]
        found.append(
            _Scored(
                entry,
                rubric.kind if rubric else "",
                rubric is not None and rubric.needs_answer,
                means,
                reasons[entry.scorer],
                excuse.total(),
                _short(excuse.most_common(1)[0][0]) if excuse else "",
            )
        )
    return found


def _rows(scored: _Scored) -> Iterator[_Row]:
    of, scale = {"scorer": scored.name}, scored.entry.scale
    if scored.kind != "preference":
        yield _Row("golden", of, scored.at_top())
    by_sample: defaultdict[str, list[float]] = defaultdict(list)
    for condition, damage in CONDITIONS.items():
        noticed = scored.noticed(condition)
        if noticed:
            yield _Row("detection" if damage.harmful else "false_alarm", {**of, "damage": condition}, noticed)
            reach = scale.high - scale.low
            yield _Row("drop", {**of, "damage": condition}, scored.drops(condition), -reach, reach, "points")
        for sample, value in noticed.items() if damage.harmful else ():
            by_sample[sample].append(value)
    if by_sample:
        shares = {sample: math.fsum(values) / len(values) for sample, values in by_sample.items()}
        yield _Row("detection", of, shares)


def _noticed(scored: Sequence[_Scored]) -> dict[str, dict[str, float]]:
    """Return, by kind of damage and sample, whether at least one scorer noticed it."""
    found: dict[str, dict[str, float]] = {}
    for condition in (condition for condition, damage in CONDITIONS.items() if damage.harmful):
        values: dict[str, float] = {}
        for each in scored:
            for sample, value in each.noticed(condition).items():
                values[sample] = max(value, values.get(sample, 0.0))
        if values:
            found[condition] = values
    return found


def _figures(rows: Sequence[_Row], sources: Mapping[str, int]) -> list[Figure]:
    clusters = [[sources[sample] for sample in row.values] for row in rows]
    values = [
        # If each sample is a source of its own, samples are independent.
        Values([*row.values.values()], of if len({*of}) < len(of) else None, row.low, row.high)
        for row, of in zip(rows, clusters, strict=True)
    ]
    found = []
    for row, of, interval in zip(rows, values, mean_intervals(values), strict=True):
        n, ends = len(row.values), (None, None) if interval is None else (interval.low, interval.high)
        if n < FEWEST:
            reason = f"{counted(n, 'answer')}, and a share or mean takes {FEWEST}"
            found.append(Figure(row.name, row.of, None, n, reason=reason, unit=row.unit))
        else:
            found.append(Figure(row.name, row.of, of.estimate.mean, n, ends[0], ends[1], unit=row.unit))
    return found


def _unnoticed_kinds(scored: Sequence[_Scored]) -> Iterator[Defect]:
    for condition, values in _noticed(scored).items():
        if len(values) >= FEWEST and not any(values.values()):
            told = f"no scorer notices {condition!r} in any of {len(values)} answers"
            judges = list(dict.fromkeys(each.entry.judge for each in scored if each.entry.judge))
            if judges:
                whose = f"the judge {judges[0]}" if len(judges) == 1 else f"the judges {', '.join(judges)}"
                yield Defect(f"{told}, {whose} included: take a more capable model for it, or another rubric")
            else:
                yield Defect(f"{told}; add one that compares answers with the golden one, such as a judge")


def _defects(scored: _Scored, figures: Sequence[Figure]) -> Iterator[Defect]:
    """Yield what is wrong with one scorer, and with the golden answers as it sees them."""
    name, same = scored.name, scored.same
    noticed = [
        value
        for condition, damage in CONDITIONS.items()
        if damage.harmful
        for value in scored.noticed(condition).values()
    ]
    if same is not None and noticed:
        yield Defect(
            f"{name} gives every answer {short_number(same)}, damaged and empty ones as well; it tells nothing apart"
        )
    elif len(noticed) >= FEWEST and not any(noticed):
        told = f"{name} scores none of {len(noticed)} damaged answers worse than the golden one"
        yield Defect(f"{told}; see whether what it measures is part of a right answer")
    for figure in figures:
        condition = figure.of.get("damage", "")
        reads_form = figure.name == "false_alarm" and figure.of.get("scorer") == name and (figure.low or 0) > _ALARMING
        if reads_form and figure.value is not None and (condition == "reworded" or scored.needs_answer):
            told = f"{name} scores {condition} golden answers worse, {percent(figure.value)} of {figure.n}"
            judged = "say in its rubric that form and length do not count"
            yield Defect(f"{told}; {judged if scored.entry.judge else 'use it only where the form is what counts'}")
    if scored.kind != "preference" and same is None:
        yield from _not_at_top(scored)


def _not_at_top(scored: _Scored) -> Iterator[Defect]:
    """Yield golden answers without the best score: each by itself if most have it, else all in one."""
    at_top, name = scored.at_top(), scored.name
    below = [sample for sample, is_top in at_top.items() if not is_top]
    if scored.top is None:
        for sample in below:
            yield Defect(f"{name} scores the golden answer worse than one made of it; look at what it measures", sample)
    elif 2 * len(below) > len(at_top) >= FEWEST:
        told = (
            f"{name} gives {len(below)} of {len(at_top)} golden answers a worse score than {short_number(scored.top)}"
        )
        why = f"; {below[0]!r}: {_short(scored.reasons[below[0]])}" if below[0] in scored.reasons else ""
        yield Defect(f"{told}: what it measures is not in them, or is no part of a good answer{why}")
    else:
        for sample in below:
            given = f"{short_number(scored.values[GOLDEN][sample])}, and not {short_number(scored.top)}"
            why = f": {_short(scored.reasons[sample])}" if sample in scored.reasons else ""
            yield Defect(f"{name} gives the golden answer {given}; mend the answer or the scorer{why}", sample)


def _short(text: str) -> str:
    line = one_line(text)
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1].rstrip()}…"
