"""Checks of questions that a model wrote: whether results state the golden answer, and whether a question is new."""

from __future__ import annotations

import re
import unicodedata
from collections import deque
from collections.abc import Iterable, Sequence
from datetime import date, timedelta

import attrs

from keval_start.generate.toolbox import Call

_NUMBER = re.compile(r"(?<![\w.,])\d+(?:,\d{3})+(?:\.\d+)?(?!\w)|\d+(?:\.\d+)?")
_NAME = re.compile(r"[^\W\d_]\w*(?:[._/:@+-]\w+)*")
_COMMON = """
    a an and are as at be been but by can do does for from had has have how i if in into is it its many me much my of on
    or should that the their there this to was were what when where which who whose will with you your
"""
_STOP = frozenset(_COMMON.split())
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_MOST_TEXTS = 100
_SAME_QUESTION = 0.8
"""The share of the words of two questions that both have, from which on they are nearly the same."""
_SAME_ANSWER = 0.5
"""The share from which on questions with one golden answer are nearly the same."""


def unsupported(answer: str, question: str, calls: Sequence[Call]) -> str | None:
    """Return a number or name of a golden answer that neither the results of these calls nor the question have.

    Names are words with a capital letter that do not begin a sentence, and words with a digit, underscore, dot, slash,
    colon, `@` or `+` inside. Numbers are compared by their value.
    """
    # An answer may also repeat what was asked for.
    texts = [*(call.text for call in calls), *(str([*call.proposed.arguments.values()]) for call in calls), question]
    known = _plain("\n".join(texts))
    numbers = set(_numbers(known))
    for number in _numbers(_plain(answer)):
        if number not in numbers:
            return number
    for name in _names(answer):
        if re.search(rf"(?<!\w){re.escape(_plain(name))}(?!\w)", known) is None:
            return name
    return None


def states(calls: Iterable[Call], passage: str) -> bool:
    """Return whether the result of a call has a passage, but for white space and the case of letters."""
    wanted = " ".join(_plain(passage).split())
    return bool(wanted) and any(wanted in " ".join(_plain(call.text).split()) for call in calls)


def has_all(calls: Iterable[Call], sought: Sequence[str]) -> bool:
    """Return whether the result of one call has all of these words, whatever stands between them."""
    return any(all(_plain(word) in _plain(call.text) for word in sought) for call in calls if call.can_prove)


def names_today(answer: str, calls: Iterable[Call], today: date) -> bool:
    """Return whether an answer names the date or the weekday of today, or of the day before or after, from results.

    A weekday counts only where a result names such a date: others may say that something is on Thursdays.
    """
    # By its time zone, a server may be a day ahead or behind.
    near = [today + timedelta(days=days) for days in (-1, 0, 1)]
    dates, said = [day.isoformat() for day in near], _plain(answer)
    if any(day in said for day in dates):
        return True
    weekdays = [_WEEKDAYS[day.weekday()] for day in near]
    return any(day in said for day in weekdays) and any(day in call.text for call in calls for day in dates)


@attrs.define
class KnownQuestions:
    """The questions that there are, to find near-duplicates of them.

    `texts` are the latest of these and of those that were dropped: what a model should not write again.
    """

    texts: deque[str] = attrs.field(factory=lambda: deque(maxlen=_MOST_TEXTS), init=False)
    _words: list[tuple[frozenset[str], str]] = attrs.field(factory=list, init=False)

    def note(self, questions: Iterable[str]) -> None:
        """Note that questions were written, whether they are kept or not."""
        self.texts.extend(questions)

    def add(self, question: str, answer: str) -> None:
        """Note a question that is kept, with its golden answer."""
        self._words.append((_words(question), _plain(answer)))

    def has_near(self, question: str, answer: str) -> bool:
        """Return whether a question is nearly the same as one of these.

        It is if both have four in five of all their words, or half of them and the same golden answer. Words are
        compared in lower case; the commonest, such as "the" and "which", do not count.
        """
        words, said = _words(question), _plain(answer)
        for others, answered in self._words:
            share = len(words & others) / max(1, len(words | others))
            if share >= (_SAME_ANSWER if said == answered else _SAME_QUESTION):
                return True
        return False


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+(?:[.:]\w+)*", _plain(text))) - _STOP


def _numbers(text: str) -> list[str]:
    return [f"{float(found.replace(',', '')):.12g}" for found in _NUMBER.findall(text)]


def _names(answer: str) -> list[str]:
    names: list[str] = []
    for match in _NAME.finditer(answer):
        name, before = match[0], answer[: match.start()].rstrip(" \"'`“‘(*_")
        begins = not before or before[-1] in ".!?:;\n"
        if re.search(r"[\d_./:@+]", name) or (not begins and name[0].isupper()):
            names.append(name)
    return names
