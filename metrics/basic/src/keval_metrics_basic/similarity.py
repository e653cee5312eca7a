"""Similarity: how many of its words an answer shares with the expected one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal

import attrs

from keval import Score, Trial
from keval_metrics_basic.evidence import NO_TRANSCRIPT, excerpt
from keval_metrics_basic.normalisation import Normalisation
from keval_metrics_basic.references import is_place, no_reference, texts_at
from keval_metrics_basic.words import tokens

__all__ = ["Similarity"]

_ARTICLES = frozenset({"a", "an", "the"})
_MOST_TOKENS = 20_000
"""The longest common subsequence of two such texts takes a tenth of a second; its time is quadratic."""

_NORMAL = Normalisation(ignore_punctuation=True)


@attrs.frozen
class _Overlap:
    """How many tokens of an answer of `said` tokens agree with a reference of `wanted` tokens."""

    shared: int
    said: int
    wanted: int
    reference: str
    cut: bool = False

    @property
    def precision(self) -> float:
        return self.shared / self.said if self.said else 0.0

    @property
    def recall(self) -> float:
        return self.shared / self.wanted

    @property
    def f1(self) -> float:
        return 2 * self.shared / (self.said + self.wanted)


@attrs.frozen
class Similarity:
    """Scores the F1 of the tokens shared with the reference, and with the most similar of several.

    `token_f1` counts them in any order and without articles (Rajpurkar et al. 2016, arXiv:1606.05250, section 6.1);
    `rouge_l` takes the longest common subsequence (Lin 2004, section 3, with beta 1).
    """

    measure: Literal["token_f1", "rouge_l"] = "token_f1"
    reference: str = attrs.field(default="answer", validator=is_place)

    def score(self, trial: Trial) -> Score:
        """Compare the answer's tokens with the reference's."""
        if trial.transcript is None:
            return NO_TRANSCRIPT
        references = [(text, self._tokens(text)) for text in texts_at(trial.sample, self.reference)]
        if not references or not all(wanted for _, wanted in references):
            wanted = "a text with words in it or a list of such texts"
            return no_reference(trial.sample, self.reference, wanted, "`reference`, another place in the sample")
        said = self._tokens(trial.output)
        overlaps = [self._overlap(said, wanted, text) for text, wanted in references]
        best = max(overlaps, key=lambda overlap: overlap.f1)
        how = "in order" if self.measure == "rouge_l" else "in any order"
        reason = (
            f"{best.shared} of {best.said} words shared {how} with the {best.wanted} of '{excerpt(best.reference)}':"
            f" precision {best.precision:.2f}, recall {best.recall:.2f}"
        )
        details = {
            "measure": self.measure,
            "shared": best.shared,
            "answer_tokens": best.said,
            "reference_tokens": best.wanted,
            "precision": round(best.precision, 6),
            "recall": round(best.recall, 6),
            "reference": excerpt(best.reference, 500),
            "cut": best.cut,
        }
        return Score(round(best.f1, 6), reason, details=details)

    def _tokens(self, text: str) -> list[str]:
        found = tokens(_NORMAL.apply(text))
        if self.measure == "rouge_l":
            return found
        # An answer may be A, as one of A, B and C.
        return [token for token in found if token not in _ARTICLES] or found

    def _overlap(self, said: Sequence[str], wanted: Sequence[str], reference: str) -> _Overlap:
        if self.measure == "token_f1":
            shared = (Counter(said) & Counter(wanted)).total()
            return _Overlap(shared, len(said), len(wanted), reference)
        cut = max(len(said), len(wanted)) > _MOST_TOKENS
        said, wanted = said[:_MOST_TOKENS], wanted[:_MOST_TOKENS]
        return _Overlap(_common_subsequence(said, wanted), len(said), len(wanted), reference, cut)


def _common_subsequence(first: Sequence[str], second: Sequence[str]) -> int:
    """Return the length of the longest common subsequence."""
    from rapidfuzz.distance import LCSseq  # takes 30 ms, which validating a config need not pay

    # Numbered, as rapidfuzz compares hashes, and those of texts differ between processes.
    numbers: dict[str, int] = {}
    ours, theirs = ([numbers.setdefault(token, len(numbers)) for token in side] for side in (first, second))
    return LCSseq.similarity(ours, theirs)
