"""Key facts: scores how much of what can be looked up in a golden answer stands in the answer."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile

import attrs
import regex

from keval import Score, Trial
from keval_metrics_basic.text import (
    LETTER,
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

_THOUSANDS = regex.compile(
    r"(?<![\w.,])\d{1,3}(?:(?:,\d{3}(?!\d))+|(?:['’_\u00a0\u2009\u202f]\d{3}(?!\d))+|(?:[. ]\d{3}(?!\d)){2,})"
)
_MARKS = regex.compile(r"[*`]|^[ \t]*(?:\d{1,3}[.)]|[-+•])(?=[ \t])", regex.MULTILINE)
"""Emphasis, marks of code, and the bullets and numbers of lists, which state nothing."""
_FENCED = regex.compile(r"```\w*\n(.*?)```", regex.DOTALL)
_ZERO = regex.compile(r"(?<![\w:.])0(?=\d:\d\d)")
_UNITS = {
    "millisecond": "ms milliseconds", "second": "s sec secs seconds", "minute": "min mins minutes",
    "hour": "h hr hrs hours", "day": "d days", "week": "weeks", "month": "months", "year": "years", "%": "percent",
    "kb": "", "mb": "", "gb": "", "tb": "", "kib": "", "mib": "", "gib": "", "tib": "", "°c": "", "°f": "",
    "m": "metre metres meter meters", "km": "kilometre kilometres kilometer kilometers",
}  # fmt: skip
_UNIT_OF = {form: unit for unit, forms in _UNITS.items() for form in (unit, *forms.split())}
_UNIT = rf"[ -]?(?:{'|'.join(sorted(map(regex.escape, _UNIT_OF), key=len, reverse=True))})(?!\w)"
_AMOUNT = regex.compile(rf"(?<=\d){_UNIT}")
_FLAG = r"(?<![\w-])--?\p{L}(?:-?\w)*"
_TERMS = regex.compile(
    r"`(?P<code>[^`\n]+)`"
    r"|(?P<path>(?:\w+://|(?<![\w/])(?:~|\.{1,2})?/)[\w.~%/\#?=&:@+-]*[\w/])"
    rf"|(?P<flag>{_FLAG})"
    rf"|(?P<number>\d{{4}}-\d\d(?:-\d\d)?|(?:(?<!\w)-)?\d+(?:[.,:]\d+)*(?:(?i:{_UNIT})|{LETTER}*))"
    rf"|(?P<word>{LETTER}+(?:(?:[-'/.]|(?<=\d),(?=\d)){LETTER}+)*)",
    regex.V1,
)
_TELLING = regex.compile(r"[\d_]|(?<=.)\p{Lu}|\w\w\.\w\w")
"""What makes a word a name or identifier, wherever it stands: a digit, an inner capital, an inner dot."""
_BEGINS = regex.compile(r"(?:^|[.!?:。！？\n])[\s*\"'(\[]*\Z")
_WRITTEN = Normalisation(ignore_case=False, ignore_whitespace=False)


@attrs.frozen
class KeyFacts:
    """Scores the share of the golden answer's facts that the answer has: numbers with units, code, paths, names.

    What the question says already does not count. A golden answer without such facts is held against the answer by its
    words. Of several golden answers, the one of which the answer has most counts.
    """

    reference: str = attrs.field(default="answer", validator=is_place)

    def score(self, trial: Trial) -> Score:
        """Look for each fact in the answer."""
        if trial.transcript is None:
            return NO_TRANSCRIPT
        question = _comparable("\n".join((trial.sample.question, *trial.sample.turns)))
        facts = [_facts(golden, question) for golden in texts_at(trial.sample, self.reference)]
        if not facts or not all(facts):
            wanted = "a text with words in it or a list of such texts"
            return no_reference(trial.sample, self.reference, wanted, "`reference`, another place in the sample")
        answer = _comparable(trial.output)
        held = [({fact: fact in answer for fact in each}, each) for each in facts]
        has, said = max(held, key=lambda each: sum(each[0].values()) / len(each[0]))
        found, missing = ([said[fact] for fact, there in has.items() if there is kept] for kept in (True, False))
        reason = f"{len(found)} of {len(has)} facts" + (f"; missing: {quoted(missing)}" if missing else "")
        details = {"found": [excerpt(text) for text in found[:50]], "missing": [excerpt(text) for text in missing[:50]]}
        return Score(round(len(found) / len(has), 6), reason, details=details)


def _comparable(text: str) -> str:
    """Return a text as facts are looked for in it: whole words, numbers and units written in one way."""
    normal = _ZERO.sub("", Normalisation().apply(_MARKS.sub("", _unseparated(text))))
    plain = _AMOUNT.sub(lambda unit: f" {_UNIT_OF[unit[0].lstrip(' -')]}", normal)
    # A flag is one word, so that `--to` is not found in `--to-all`.
    return bounded(regex.sub(_FLAG, lambda flag: flag[0].replace("-", "_"), plain))


def _unseparated(text: str) -> str:
    """Return a text without the separators of thousands."""
    return _THOUSANDS.sub(lambda number: regex.sub(r"\D", "", number[0]), text)


def _facts(golden: str, question: str) -> dict[str, str]:
    """Return the facts of a golden answer, or else its words, comparable and as they stand there."""
    whole = _comparable(golden)
    facts = {_comparable(term): term for term in _terms(golden)}
    if new := {fact: term for fact, term in facts.items() if fact in whole and fact not in question}:
        return new
    words = {bounded(word): word for word in tokens(whole.replace("\0", "")) if regex.search(r"\w", word)}
    return {word: term for word, term in words.items() if word not in question} or words


def _terms(text: str) -> Iterator[str]:
    """Yield what of a text can be looked up, as it is written."""
    fenced = _FENCED.sub(lambda block: "\n".join(f"`{line}`" for line in block[1].splitlines()), text)
    for match in _TERMS.finditer(_WRITTEN.apply(_unseparated(fenced))):
        word, start = match["word"], match.start()
        if match["code"]:
            yield from _code(match["code"])
        elif not word or _TELLING.search(word):
            yield match[0]
        elif word[0].isupper() and len(word) > 1 and not _BEGINS.search(match.string, max(0, start - 20), start):
            yield word


def _code(span: str) -> Iterator[str]:
    """Yield the parts of a code span: its command, and each option and value; not what is to be filled in."""
    first, *others = words = span.lstrip("$> ").split() or [span]
    if regex.search(r"[(){};]", span):
        yield span
        return
    command = [first, *takewhile(regex.compile(r"\p{Ll}[\w.-]*").fullmatch, others)]
    yield " ".join(command)
    for word in words[len(command) :]:
        if regex.search(r"\w", word) and not regex.fullmatch(r"\p{Lu}+|[<\[].*", word):
            yield word
