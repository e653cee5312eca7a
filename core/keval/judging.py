"""Judging: what a judge is handed for one judgement, and where it reports what that took."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence

import attrs

from keval.records import Failure, Usage
from keval.scores import Judgement

__all__ = ["JudgementRecorder", "Judging"]

_LONGEST = 10_000
"""Characters of a reply or claim; they stand on the line of every rubric's score."""
_MOST_CLAIMS = 100


@attrs.define
class JudgementRecorder:
    """Collects what one judgement took, over all attempts at it."""

    _model_calls: int | None = attrs.field(default=None, init=False)
    _usage: Usage = attrs.field(factory=Usage, init=False)
    _claims: tuple[str, ...] | None = attrs.field(default=None, init=False)
    _rejected: list[str] = attrs.field(factory=list, init=False)

    def model_called(self, usage: Usage | None = None) -> None:
        """One request to the model was answered."""
        self._model_calls = (self._model_calls or 0) + 1
        if usage is not None:
            self._usage = self._usage + usage

    def rejected(self, reply: str) -> None:
        """The model's reply, as it came, is no judgement: it cannot be read, or leaves a rubric's levels.

        Of a long one the beginning is kept, with its length.
        """
        self._rejected.append(reply if len(reply) <= _LONGEST else f"{reply[:_LONGEST]}… ({len(reply)} characters)")

    def unverified(self, claims: Iterable[str]) -> None:
        """What the answer states and the judge could neither confirm nor refute; the latest report stands.

        Report an empty list where there is nothing, and nothing where the judge did not say. The first 100 are kept.
        """
        if isinstance(claims, str):
            raise TypeError("unverified claims are a list of texts, not one text")
        self._claims = tuple(claim[:_LONGEST] for claim in itertools.islice(claims, _MOST_CLAIMS))

    def judgement(self, repetition: int = 1, attempts: Sequence[Failure] = ()) -> Judgement:
        """Return what was reported so far."""
        return Judgement(
            repetition=repetition,
            unverified_claims=self._claims,
            model_calls=self._model_calls,
            usage=self._usage,
            rejected=tuple(self._rejected),
            attempts=tuple(attempts),
        )


@attrs.frozen
class Judging:
    """What a judge gets for one attempt at a judgement, besides trial and rubrics; both counts are from 1.

    `repetition` is the judge's own. `seed` differs between its repetitions and samples, and is the same for every arm.
    `model_headers` go with every request to the model.
    """

    repetition: int = 1
    attempt: int = 1
    seed: int = 0
    model_headers: Mapping[str, str] = attrs.field(factory=dict)
    recorder: JudgementRecorder = attrs.field(factory=JudgementRecorder, eq=False, repr=False)
