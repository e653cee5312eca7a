"""Answers: scores whether an answer equals, contains, matches or resembles what is expected."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Literal

import attrs
import regex

from keval import Score, Trial
from keval_metrics_basic.text import (
    NO_TRANSCRIPT,
    Normalisation,
    bounded,
    excerpt,
    is_place,
    no_reference,
    quoted,
    texts_at,
    tokens,
)


@attrs.frozen
class Equals:
    """Scores 1 if the answer is the expected text, or any of several; a full stop at the very end does not count."""

    expected: str | tuple[str, ...] | None = attrs.field(default=None)
    reference: str = attrs.field(default="answer", validator=is_place)
    ignore_case: bool = True
    ignore_whitespace: bool = True
    ignore_punctuation: bool = False

    @expected.validator
    def _check(self, attribute: attrs.Attribute[object], value: object) -> None:
        if value == ():
            raise ValueError("'expected' must hold at least one text")

    def score(self, trial: Trial) -> Score:
        """Compare the whole answer."""
        if trial.transcript is None:
            return NO_TRANSCRIPT
        if self.expected is None:
            expected = texts_at(trial.sample, self.reference)
        else:
            expected = (self.expected,) if isinstance(self.expected, str) else self.expected
        if not expected:
            return no_reference(trial.sample, self.reference, "a text or a list of texts", "`expected`")
        normal = Normalisation(self.ignore_case, self.ignore_whitespace, self.ignore_punctuation)
        answer = normal.phrase(trial.output)
        matched = next((text for text in expected if normal.phrase(text) == answer), None)
        details = {
            "answer": excerpt(trial.output, 500),
            "expected": [excerpt(text, 500) for text in expected[:20]],
            "matched": None if matched is None else excerpt(matched, 500),
        }
        said = f"said '{excerpt(trial.output)}'"
        if matched is not None:
            return Score(1.0, f"{said}, as expected", details=details)
        which = "any of " if len(expected) > 1 else ""
        return Score(0.0, f"{said}, expected {which}{quoted(expected)}", details=details)


_LISTS = ("all_of", "any_of", "none_of")


@attrs.frozen
class Contains:
    """Scores 1 if the answer contains all of `all_of`, one of `any_of` and none of `none_of`.

    With none of the three, all texts of the reference, or one of several golden answers. `whole_words` keeps `rain`
    from being found in `train`.
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
        any_of: Sequence[str] = self.any_of
        if not (self.all_of or self.any_of or self.none_of):
            all_of = texts_at(trial.sample, self.reference)
            if not all_of or not all(self._normal.phrase(text).strip() for text in all_of):
                options = "`all_of`, `any_of` or `none_of`"
                return no_reference(
                    trial.sample, self.reference, "a text with words in it or a list of such texts", options
                )
            if self.reference == "answer" and len(all_of) > 1:
                all_of, any_of = (), all_of
        answer = self._bounds(self._normal.apply(trial.output))
        missing = [text for text in all_of if not self._found(text, answer)]
        found = [text for text in all_of if text not in missing]
        one_of = [text for text in any_of if self._found(text, answer)]
        forbidden = [text for text in self.none_of if self._found(text, answer)]
        faults = [f"missing: {quoted(missing)}"] if missing else []
        faults += [f"none of {quoted(any_of)}"] if any_of and not one_of else []
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


_LONGEST_PATTERN = 10_000
"""Compiling a pattern cannot be interrupted, as matching can."""


class _PatternError(ValueError):
    """A pattern does not compile."""


@attrs.frozen
class Regex:
    """Scores 1 if `pattern`, or else the reference, is found in the answer; with `absent`, if it is not.

    A match that takes more than `timeout` seconds is given up, and the answer unscored.
    """

    pattern: str | None = attrs.field(default=None)
    reference: str = attrs.field(default="answer", validator=is_place)
    full_match: bool = False
    ignore_case: bool = False
    absent: bool = False
    timeout: float = attrs.field(default=1.0, validator=attrs.validators.gt(0))

    @pattern.validator
    def _check(self, attribute: attrs.Attribute[object], value: str | None) -> None:
        if value is not None:
            try:
                _compiled(value, self.ignore_case)
            except _PatternError as error:
                raise ValueError(f"'pattern' must be a regular expression: {error}") from error

    def score(self, trial: Trial) -> Score:
        """Match the answer as it stands; of several reference patterns, the first that matches counts."""
        if trial.transcript is None:
            return NO_TRANSCRIPT
        patterns = texts_at(trial.sample, self.reference) if self.pattern is None else (self.pattern,)
        if not patterns:
            return no_reference(trial.sample, self.reference, "a pattern or a list of patterns", "`pattern`")
        for pattern in patterns:
            try:
                compiled = _compiled(pattern, self.ignore_case)
                match = compiled.fullmatch if self.full_match else compiled.search
                found = match(trial.output, timeout=self.timeout)
            except _PatternError as error:
                return Score(None, f"{self.reference} of the sample is no pattern: {error}", details=_evidence(pattern))
            except (TimeoutError, MemoryError):
                remedy = "make its repeats possessive or bounded, or raise `timeout`"
                reason = f"'{excerpt(pattern)}' was not done with the answer in {self.timeout:g} s; {remedy}"
                return Score(None, reason, details=_evidence(pattern))
            if found is not None:
                reason = f"'{excerpt(pattern)}' matches '{excerpt(found.group())}'"
                return Score(0.0 if self.absent else 1.0, reason, details=_evidence(pattern, found))
        what = f"'{excerpt(patterns[0])}'" if len(patterns) == 1 else f"none of {len(patterns)} patterns"
        reason = f"{what} {'does not match' if len(patterns) == 1 else 'matches'} '{excerpt(trial.output)}'"
        return Score(1.0 if self.absent else 0.0, reason, details=_evidence(patterns[0]))


@lru_cache(maxsize=256)
def _compiled(pattern: str, ignore_case: bool) -> regex.Pattern[str]:
    """Compile a pattern. Raises _PatternError."""
    if len(pattern) > _LONGEST_PATTERN:
        raise _PatternError(f"it has {len(pattern)} characters, more than {_LONGEST_PATTERN}")
    try:
        return regex.compile(pattern, regex.IGNORECASE if ignore_case else 0)
    except (regex.error, ValueError, OverflowError, RecursionError) as error:
        raise _PatternError(f"{error} in '{excerpt(pattern)}'") from error


def _evidence(pattern: str, found: regex.Match[str] | None = None) -> dict[str, Any]:
    def kept(text: str | None) -> str | None:
        return None if text is None else excerpt(text, 500)

    return {
        "pattern": excerpt(pattern, 500),
        "matched": kept(found.group() if found else None),
        "groups": [*map(kept, found.groups()[:20])] if found else [],
        "named": {name: kept(text) for name, text in found.groupdict().items()} if found else {},
    }


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
