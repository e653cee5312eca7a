"""The examination of samples: which cannot tell arms apart, which nobody answers, and which are there twice."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import ceil, isfinite
from statistics import fmean, variance
from typing import TypeAlias

import attrs

from keval import Sample
from keval.records.scores import Scorer
from keval_instrument.check_folder import Material
from keval_instrument.findings import (
    AnswerKey,
    Defect,
    Examined,
    Figure,
    gradings_of,
    scorer_name,
    share_figure,
    sources_of,
)

FIGURES: Mapping[str, str] = {
    "saturated": "The share of questions for which every answer of every arm gets the best value of the scale.",
    "floored": "The share of questions for which every answer of every arm gets the worst value of the scale.",
    "noisy": "The share of questions whose scores differ no more between arms than between repetitions of an arm.",
    "unanswered": "The share of questions to which every trial failed.",
    "duplicates": "The share of questions that repeat another one, word for word or nearly.",
}

_ALIKE = 0.9
"""The share of common words from which two questions are nearly the same: Jaccard's index of their sets of words."""

_Arms: TypeAlias = Mapping[tuple[str, str], Sequence[float]]
"""The scores of the answers to one question, by agent and condition."""


def examine(material: Material) -> Examined:
    """Examine the samples of a run by the scores of their answers, and all that are known by their texts.

    Raises RunError.
    """
    run = material.asked
    if run is None:
        return Examined("samples", reason=material.reasons.get("asked", "there is no run of the evaluation"))
    scales = {entry.scorer: entry.scale for entry in run.manifest.scorers}
    scores = {scorer: _by_question(gradings) for scorer, gradings in gradings_of(run).items()}
    sources = sources_of(run)
    figures: list[Figure] = []
    found: dict[str, dict[Scorer, Mapping[str, bool]]] = {"saturated": {}, "floored": {}, "noisy": {}}
    for scorer, questions in scores.items():
        scale = scales[scorer]
        ends = (scale.high, scale.low) if scale.better == "higher" else (scale.low, scale.high)
        for name, end in zip(("saturated", "floored"), ends, strict=True):
            if isfinite(end):
                found[name][scorer] = {
                    sample: all(abs(value - end) < 1e-9 for values in arms.values() for value in values)
                    for sample, arms in questions.items()
                }
        found["noisy"][scorer] = {
            sample: noisy for sample, arms in questions.items() if (noisy := _is_noisy(arms)) is not None
        }
    for name, by in found.items():
        lacks = "no question has two repetitions in each of two arms" if name == "noisy" else "no answer has a score"
        figures += [share_figure(name, {"scorer": scorer_name(of)}, each, lacks, sources) for of, each in by.items()]
    answered = {trial.sample for trial in run.known_trials.answered}
    failed = {trial.sample: trial.sample not in answered for trial in run.known_trials}
    asked = (run.sample(sample) for sample in run.samples.ids if sample in failed)
    texts = {sample.id: _Text.of(sample) for sample in (asked if material.plan is None else material.plan.samples)}
    copies = _copies(texts)
    repeated = dict.fromkeys(texts, False) | {sample: True for pair in copies for sample in pair}
    figures.append(share_figure("unanswered", {}, failed, "there is no trial", sources))
    figures.append(share_figure("duplicates", {}, repeated, "there is no sample"))
    return Examined("samples", tuple(figures), (*_copy_defects(texts, copies), *_defects(found, failed)))


def _by_question(gradings: Mapping[AnswerKey, Sequence[float]]) -> Mapping[str, _Arms]:
    """Return the scores of answers, a mean where a judge graded one several times, by question and arm."""
    found: dict[str, dict[tuple[str, str], list[float]]] = defaultdict(lambda: defaultdict(list))
    for answer, values in gradings.items():
        found[answer.sample][answer.agent, answer.condition].append(fmean(values))
    return found


def _is_noisy(arms: _Arms) -> bool | None:
    """Return whether arms differ no more than repetitions do; `None` where two arms have not two repetitions each.

    As in an analysis of variance of one way, the mean square between arms is held against that within them.
    """
    groups = [values for values in arms.values() if len(values) > 1]
    if len(groups) < 2:
        return None
    within = fmean(variance(values) for values in groups)
    between = fmean(map(len, groups)) * variance([fmean(values) for values in groups])
    # Repetitions that agree fully are no noise, however alike arms are.
    return within > 1e-12 and between <= within


def _defects(found: Mapping[str, Mapping[Scorer, Mapping[str, bool]]], failed: Mapping[str, bool]) -> Iterator[Defect]:
    """Yield the questions that failed, and those that are of no use to any scorer that has an opinion of them."""
    for sample in (sample for sample, all_failed in failed.items() if all_failed):
        yield Defect("every trial of every arm failed, so the question is never scored", sample)
    remedies = {
        "saturated": "every arm gets the best value by every scorer, so it tells no arms apart; ask something harder",
        "floored": "every arm gets the worst value by every scorer; see whether it can be answered at all",
    }
    for name, told in remedies.items():
        for sample in failed:
            opinions = [by[sample] for by in found[name].values() if sample in by]
            if opinions and all(opinions):
                yield Defect(told, sample)


@attrs.frozen
class _Text:
    """What a sample asks and what the golden answer is, without case, accents and punctuation."""

    asked: str
    answer: str | None
    words: frozenset[str]

    @classmethod
    def of(cls, sample: Sample) -> _Text:
        earlier = [message.text for message in sample.history]
        asked = _normal(" ".join((*earlier, *sample.asked)))
        return cls(asked, None if sample.answer is None else _normal(sample.answer), frozenset(asked.split()))

    def is_like(self, other: _Text) -> bool:
        """Return whether two texts are the same or nearly so."""
        both = len(self.words & other.words)
        return self.asked == other.asked or both >= _ALIKE * len(self.words | other.words) > 0


def _normal(text: str) -> str:
    plain = "".join(char for char in unicodedata.normalize("NFKD", text) if not unicodedata.combining(char))
    # Where there are only other signs, such as emoji, they are what is asked.
    return " ".join(re.findall(r"\w+", plain.casefold())) or text.strip()


def _copies(texts: Mapping[str, _Text]) -> list[tuple[str, str]]:
    """Return the pairs of samples that ask the same or nearly so.

    Sets of words that are so much alike share one of the rarest words of each, as many as may lack in the other set;
    only such pairs are held against each other.
    """
    count = Counter(word for text in texts.values() for word in text.words)
    seen: dict[str, list[str]] = defaultdict(list)
    found: dict[tuple[str, str], None] = {}
    for sample, text in texts.items():
        rarest = sorted(text.words, key=lambda word: (count[word], word))
        # All questions without any text are alike.
        for word in rarest[: len(rarest) - ceil(_ALIKE * len(rarest)) + 1] or [text.asked]:
            pairs = ((other, sample) for other in seen[word] if texts[other].is_like(text))
            found.update(dict.fromkeys(pairs))
            seen[word].append(sample)
    return [*found]


def _copy_defects(texts: Mapping[str, _Text], copies: Iterable[tuple[str, str]]) -> Iterator[Defect]:
    for first, second in copies:
        one, other = texts[first], texts[second]
        how = "asks the same as" if one.asked == other.asked else "asks nearly the same as"
        if one.asked == other.asked and one.answer != other.answer and None not in (one.answer, other.answer):
            yield Defect(f"{how} {first!r}, with another golden answer; correct one of them", second)
        else:
            yield Defect(f"{how} {first!r}; leave one out, as the two count as independent questions", second)
