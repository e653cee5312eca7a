"""Containment: does the answer hold the texts it must, and none that it must not."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from keval import Score, Trial
from keval_metrics_basic.evidence import NO_TRANSCRIPT, excerpt, quoted
from keval_metrics_basic.normalisation import Normalisation
from keval_metrics_basic.references import is_place, no_reference, texts_at
from keval_metrics_basic.words import bounded

__all__ = ["Contains"]

_LISTS = ("all_of", "any_of", "none_of")


@attrs.frozen
class Contains:
    """Scores 1 if the answer contains all of `all_of`, one of `any_of` and none of `none_of`.

    With none of the three, all texts of the reference. `whole_words` keeps `rain` from being found in `train`.
    """

    all_of: tuple[str, ...] = ()
    any_of: tuple[str, ...] = ()
    none_of: tuple[str, ...] = ()
    reference: str = attrs.field(default="answer", validator=is_place)
    whole_words: bool = True
    ignore_case: bool = True
    ignore_whitespace: bool = True
    ignore_punctuation: bool = False

    def __attrs_post_init__(self) -> None:
        for name in _LISTS:
            for text in getattr(self, name):
                if not self._normal.phrase(text).strip():
                    raise ValueError(f"{name!r} must hold texts of which normalisation leaves something, got {text!r}")

    @property
    def _normal(self) -> Normalisation:
        return Normalisation(self.ignore_case, self.ignore_whitespace, self.ignore_punctuation)

    def score(self, trial: Trial) -> Score:
        """Look for each text in the answer."""
        if trial.transcript is None:
            return NO_TRANSCRIPT
        all_of: Sequence[str] = self.all_of
        if not (self.all_of or self.any_of or self.none_of):
            all_of = texts_at(trial.sample, self.reference)
            if not all_of or not all(self._normal.phrase(text).strip() for text in all_of):
                options = "`all_of`, `any_of` or `none_of`"
                return no_reference(
                    trial.sample, self.reference, "a text with words in it or a list of such texts", options
                )
        answer = self._bounds(self._normal.apply(trial.output))
        missing = [text for text in all_of if not self._found(text, answer)]
        found = [text for text in all_of if text not in missing]
        one_of = [text for text in self.any_of if self._found(text, answer)]
        forbidden = [text for text in self.none_of if self._found(text, answer)]
        faults = [f"missing: {quoted(missing)}"] if missing else []
        faults += [f"none of {quoted(self.any_of)}"] if self.any_of and not one_of else []
        faults += [f"must not be there: {quoted(forbidden)}"] if forbidden else []
        held = [*found, *one_of]
        merits = [f"contains {quoted(held)}"] if held else []
        merits += [f"none of {quoted(self.none_of)}"] if self.none_of else []
        details = {
            "found": [excerpt(text, 500) for text in held],
            "missing": [excerpt(text, 500) for text in missing],
            "forbidden": [excerpt(text, 500) for text in forbidden],
        }
        return Score(0.0 if faults else 1.0, "; ".join(faults or merits), details=details)

    def _found(self, text: str, answer: str) -> bool:
        return self._bounds(self._normal.phrase(text)) in answer

    def _bounds(self, text: str) -> str:
        return bounded(text) if self.whole_words else text
