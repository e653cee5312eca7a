"""Bias of judges: what they make of the form of an answer, of its place, and of the same answer seen again."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean, variance

import attrs

from keval import Rubric, Run
from keval.records.formats import percent, signed
from keval.records.scores import SMALL_SHARE, Scorer
from keval_analysis.findings.effects import Effect, better_share
from keval_analysis.stats.intervals import Values, mean_intervals
from keval_instrument.check_folder import Material
from keval_instrument.findings import FEWEST, Defect, Examined, Figure, scorer_name, sources_of
from keval_instrument.restyling import WAYS

FIGURES = {
    "shift": "By how much scores change when answers are restyled, which says nothing else.",
    "repeat": "The share of answers that a judge gives the same level in all its gradings.",
    "repeat_sd": "How much a judge's gradings of one answer scatter, as a standard deviation.",
    "position": "How much more often a judge that compares prefers the answer that stands first; negative, the second.",
    "inconsistent": "The share of pairs of which such a judge prefers another answer when their order is swapped.",
}

_STEADY = 0.95
"""A judge that surely gives fewer answers than this the same level again is unsteady."""

_Found = tuple[Figure, str | None]
"""A figure, and what is wrong, if it is a defect."""


def examine(material: Material) -> Examined:
    """Examine judges, and how restyling changes what metrics give. Raises RunError: a run is damaged."""
    runs = [run for run in (material.asked, material.damaged, material.restyled) if run is not None]
    if not runs:
        return Examined("bias", reason=material.reasons.get("asked", "there is no run of the evaluation"))
    found = [*_shifts(material, runs[0]), *_Judged.of(runs).found()]
    return Examined(
        "bias", tuple(figure for figure, _ in found), tuple(Defect(wrong) for _, wrong in found if wrong is not None)
    )


def _rubrics_of(run: Run) -> dict[Scorer, Rubric]:
    return {entry.scorer: run.manifest.rubrics[entry.rubric] for entry in run.manifest.scorers if entry.rubric}


def _shifts(material: Material, any_run: Run) -> Iterator[_Found]:
    """Yield what each way of restyling does to the mean of each scorer."""
    run = material.restyled
    if run is None:
        why = material.reasons.get("restyled", "no answers were restyled")
        for scorer in _rubrics_of(any_run):
            yield Figure("shift", {"scorer": scorer_name(scorer)}, None, 0, reason=why, unit="points"), None
        return
    rubrics = _rubrics_of(run)
    for effect in run.summary().effects:
        of = {"scorer": scorer_name(effect.scorer), "way": effect.condition}
        if effect.n < FEWEST:
            why = f"fewer than {FEWEST} answers have a score both ways"
            yield Figure("shift", of, None, effect.n, reason=why, unit="points"), None
        else:
            found = Figure("shift", of, effect.difference, effect.n, effect.ci_low, effect.ci_high, unit="points")
            yield found, _wrong_shift(run, effect, rubrics.get(effect.scorer))


def _wrong_shift(run: Run, effect: Effect, rubric: Rubric | None) -> str | None:
    """Return what is wrong with a shift that is sure, and more than a twentieth of the scale.

    By a rubric that compares with the golden answer, form is worth nothing. Other rubrics, such as one of helpfulness,
    and metrics may rate form; but padding makes no answer better by any rubric.
    """
    entry = run.manifest.scorer(effect.scorer)
    if rubric is None or entry is None or effect.difference is None or effect.verdict not in ("better", "worse"):
        return None
    rates_form = not rubric.needs_answer and (effect.condition, effect.verdict) != ("padded", "better")
    if rates_form or abs(better_share(effect.difference, entry.scale) or 0.0) <= SMALL_SHARE:
        return None
    return (
        f"{scorer_name(effect.scorer)}: {signed(effect.difference)} points for the same answers, restyled"
        f" ({WAYS[effect.condition]}); tell the judge in the rubric what is not to count, or take another judge"
    )


@attrs.frozen(eq=False)
class _Judged:
    """What judges gave in several runs, each judgement with the number of its sample's source.

    `gradings` are by scorer and answer, and `orders` have, of two orders in which a judge saw a pair of answers, which
    place it preferred: `first`, `second` or `tie`. A judgement for which the judge was not asked is left out.
    """

    rubrics: Mapping[Scorer, Rubric]
    gradings: Mapping[Scorer, Mapping[tuple[int, str, int], list[float]]]
    orders: Mapping[Scorer, Sequence[tuple[int, Sequence[str]]]]

    @classmethod
    def of(cls, runs: Sequence[Run]) -> _Judged:
        sources = sources_of(*runs)
        gradings: dict[Scorer, dict[tuple[int, str, int], list[float]]] = defaultdict(lambda: defaultdict(list))
        orders: dict[Scorer, list[tuple[int, Sequence[str]]]] = defaultdict(list)
        for number, run in enumerate(runs):
            for line in run.scores():
                # A level that was given without asking repeats always, and would make the judge steadier than it is.
                if line.judgement is None or line.judgement.model_calls == 0 or line.score.value is None:
                    continue
                source = sources[line.sample]
                gradings[line.scorer][number, line.trial, source].append(line.score.value)
                places = line.score.details.get("orders")
                # Details are whatever the plugin of the judge wrote.
                if isinstance(places, list) and {*places} <= _PLACES.keys():
                    orders[line.scorer].append((source, places))
        return cls(_rubrics_of(runs[0]), gradings, orders)

    def found(self) -> Iterator[_Found]:
        """Yield the figures of each judge and rubric."""
        for scorer, rubric in self.rubrics.items():
            yield from self._repeats(scorer, rubric)
            if rubric.kind == "preference":
                yield from self._places(scorer)

    def _repeats(self, scorer: Scorer, rubric: Rubric) -> Iterator[_Found]:
        """Yield how often a judge grades an answer alike, over all answers that it graded more than once.

        Shares of claims differ a little whenever the answer is cut in another way, which is no defect.
        """
        of = {"scorer": scorer_name(scorer)}
        again = {answer: given for answer, given in self.gradings[scorer].items() if len(given) > 1}
        same = _mean("repeat", of, [(source, len({*given}) == 1) for (*_, source), given in again.items()], 0.0)
        if same.value is None:
            once = "each answer was graded once; two or more `judge_repetitions` show it"
            why = same.reason if again else once if self.gradings[scorer] else "it graded no answer"
            for name, unit in (("repeat", "share"), ("repeat_sd", "points")):
                yield Figure(name, of, None, len(again), reason=why, unit=unit), None
            return
        wrong = None
        if same.high is not None and same.high < _STEADY and rubric.kind != "claims":
            wrong = (
                f"{of['scorer']}: the same answer gets another level in {percent(1 - same.value)} of cases;"
                " set the judge's temperature to 0, take a rubric with clearer levels, or more `judge_repetitions`"
            )
        yield same, wrong
        freedom = sum(len(given) - 1 for given in again.values())
        # Pooled about the mean of each answer, as in reports.
        scatter = math.sqrt(sum(variance(given) * (len(given) - 1) for given in again.values()) / freedom)
        yield Figure("repeat_sd", of, scatter, len(again), unit="points"), None

    def _places(self, scorer: Scorer) -> Iterator[_Found]:
        """Yield how far the preferences of a judge follow the places of the answers."""
        of, pairs = {"scorer": scorer_name(scorer)}, self.orders[scorer]
        first = _mean("position", of, [(at, fmean(map(_PLACES.__getitem__, places))) for at, places in pairs], -1.0)
        sure = first.low is not None and first.high is not None and (first.low > 0 or first.high < 0)
        wrong = None
        if first.value is not None and sure and abs(first.value) > SMALL_SHARE:
            which = "first" if first.value > 0 else "second"
            wrong = (
                f"{of['scorer']}: the answer that stands {which} is preferred more often than the other, by"
                f" {percent(abs(first.value))} of pairs; as only what both orders agree on counts, this makes ties and"
                " no false winner; take another judge if they are too many"
            )
        yield first, wrong
        # Who prefers the same answer in both orders prefers two places, unless both are ties.
        other = [(at, sum(map(_PLACES.__getitem__, places)) != 0) for at, places in pairs]
        yield _mean("inconsistent", of, other, 0.0), None


_PLACES = {"first": 1.0, "second": -1.0, "tie": 0.0}


def _mean(name: str, of: Mapping[str, str], values: Sequence[tuple[int, float]], lowest: float) -> Figure:
    """Return the mean of values between `lowest` and 1, each with the number of its source, as a figure."""
    sources, found = [source for source, _ in values], [float(value) for _, value in values]
    if len({*sources}) < FEWEST:
        return Figure(name, of, None, len(found), reason=f"fewer than {FEWEST} questions tell of it")
    ends = mean_intervals([Values(found, sources, lowest, 1.0)])[0]
    low, high = (ends.low, ends.high) if ends else (None, None)
    return Figure(name, of, fmean(found), len(found), low, high)
