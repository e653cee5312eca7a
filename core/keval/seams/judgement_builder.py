"""The judgement builder: judges report to one while they work, and keval makes a record of what they reported."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

import attrs

from keval.records.scores import Judgement
from keval.records.transcript import Refusal
from keval.records.trial import Failure
from keval.records.usage import ModelUse, Usage
from keval.seams.request_log import RequestLog

_LONGEST = 10_000
"""Characters that are kept of a rejected reply or a claim; each score line of the judgement repeats them."""
_MOST_CLAIMS = 100


@attrs.define
class JudgementBuilder:
    """Collects what one judgement took, over all attempts at it."""

    _use: ModelUse = attrs.field(factory=ModelUse, init=False)
    requests: RequestLog = attrs.field(factory=RequestLog, init=False)
    _rejected: list[str] = attrs.field(factory=list, init=False)
    _claims: tuple[str, ...] | None = attrs.field(default=None, init=False)

    def model_called(self, usage: Usage | None = None) -> None:
        """Report that the model answered one request; without `usage`, the judgement's usage is unknown."""
        self._use.add(usage)

    def refused(self, refusal: Refusal) -> None:
        """Report that a model request was refused and is sent again."""
        self.requests.refused(refusal)

    def rejected(self, reply: str) -> None:
        """Report a reply of the model that is not a judgement: it cannot be read, or leaves a rubric's levels.

        The first 10,000 characters of a longer reply are kept, with its length.
        """
        kept = reply if len(reply) <= _LONGEST else f"{reply[:_LONGEST]}… ({len(reply)} characters)"
        self._rejected.append(kept)

    def unverified(self, claims: Iterable[str]) -> None:
        """Report what the answer states and the judge could neither confirm nor refute; the latest report counts.

        Report an empty list where there is no such claim, and nothing where the judge did not say. The first 100 claims
        are kept.
        """
        # A text is an iterable of texts, too: its characters.
        if isinstance(claims, str):
            raise TypeError("unverified claims are a list of texts, not one text")
        self._claims = tuple(claim[:_LONGEST] for claim in islice(claims, _MOST_CLAIMS))

    def judgement(self, repetition: int = 1, attempts: Sequence[Failure] = ()) -> Judgement:
        """Return what was reported so far."""
        return Judgement(
            repetition=repetition,
            unverified_claims=self._claims,
            model_calls=self._use.calls or None,
            usage=(self._use.usage or Usage()).estimated(self.requests.tokens),
            rejected=tuple(self._rejected),
            attempts=tuple(attempts),
            refusals=len(self.requests.refusals),
        )
