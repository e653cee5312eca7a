"""Answers: what the tools' results say about a question, out of records and texts."""

from __future__ import annotations

import calendar
import datetime
import re
from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any

import attrs

from keval_simulator.conversation import Conversation
from keval_simulator.documents import best_passages, passages
from keval_simulator.found import CATALOGUES, columns_of, nearness
from keval_simulator.parameters import FORM
from keval_simulator.results import Outcome, label, records, shown
from keval_simulator.words import alike, lexicon, shares_stem, stem, stems

_MOST_RECORDS = 6
_MOST_FIELDS = 16
_FEW_FIELDS = 12
_MOST_KINDS = 3
"""Lists of so many kinds in one result are told each for itself."""
_SHORT = 25
"""A text of so many words is told whole."""
_SHORT_LISTING = 300
"""How many characters a listing has that is told with what was opened."""
_HEADINGS = re.compile(r"\bhead(?:ing|line)s?\b", re.IGNORECASE)
_PROSE_WORDS = 12
_NUMBER = re.compile(r"(?<![\w.-])\d+(?![\w.])")
_MOST = lexicon(
    "largest biggest highest most max maximum longest newest latest tallest greatest top heaviest dearest last"
)
_LEAST = lexicon("smallest lowest least min minimum shortest oldest earliest fewest cheapest lightest youngest first")
_IN_TIME = lexicon("when latest newest oldest earliest first last recent recently")
_COUNTS = re.compile(r"\bhow many\b|\bnumber of \w+s\b|\bcount\b", re.IGNORECASE)
_SUMS = re.compile(
    r"\b(total|sum|altogether|combined"
    r"|how much (?:money )?(?:did|do|does|have|has)\b.*\b(?:spen[dt]|pa(?:y|id)|cost|earn\w*))\b"
    r"|\b(average|mean)\b",
    re.IGNORECASE,
)
_LACKS = re.compile(r"\b(?:not|no|without|missing|lacks?|n't)\b", re.IGNORECASE)
_MONTHS = {stem(each.lower()) for each in calendar.month_name}
_NAMES = ("name", "title", "id", "text", "city", "label")


@attrs.frozen
class Flaws:
    """How often an answer is less than perfect, as probabilities; the defaults are a decent, small model's."""

    overlooks: float = 0.1
    """Leaves out one of the passages of a document that it should tell."""
    clutches: float = 0.3
    """Tells the beginning of a document where nothing in it answers the question."""
    misreads: float = 0.06
    """States a number wrong."""


def composed(conversation: Conversation, rng: Random, flaws: Flaws) -> str:
    """Answer out of the results that have most of what was asked, with the flaws of a hasty reader."""
    useful = [each for each in conversation.outcomes if each.useful]
    if not stems("table column") & stems(conversation.question):
        useful = [e for e in useful if not set(CATALOGUES) & set(map(str, e.call.arguments.values()))] or useful
    asked = stems(conversation.subject) - FORM
    asked -= stems(
        " ".join(shown(value) for each in useful for name, value in each.call.arguments.items() if name != "query")
    )
    weights: list[float] = []
    for each in useful:
        before = [weight for other, weight in zip(useful, weights, strict=False) if _led_to(other, each)]
        own, inherited = nearness(shown(each.data), asked), max(before, default=0.0)
        weights.append(max(own + 0.5 * inherited, inherited))
    chosen = [each for each, weight in zip(useful, weights, strict=True) if weight >= max(weights) - 0.5]
    # A short listing is told, too, beside what was opened out of it.
    led = [e for e in useful if e not in chosen and not isinstance(e.data, str) and len(shown(e.data)) < _SHORT_LISTING]
    chosen = [*(each for each in led if any(_led_to(each, other) for other in chosen)), *chosen]
    texts = [text for each in chosen for text in _prose(each.data)]
    told = [_told(each, conversation) for each in chosen if not isinstance(each.data, str)]
    pointed = [each.text for each in conversation.asked if each.kind in ("code", "id", "ip", "path", "url")]
    told_whole = any(text in map(str, each.call.arguments.values()) for text in pointed for each in chosen)
    quoted = _quoted(texts, conversation.subject, rng, flaws, 3 * _SHORT if told_whole else _SHORT)
    said = " ".join(dict.fromkeys(filter(None, (*told, quoted))))
    if rng.random() < flaws.misreads:
        said = _NUMBER.sub(lambda number: str(int(number[0]) + rng.choice((1, 2, 5))), said, count=1)
    if not said:
        return "I could not find an answer to this in what I looked up."
    opening = rng.choice(("", "Here is what I found. ", "Based on what I looked up: "))
    closing = rng.choice(("", " I suggest checking the source for details.", " Let me know if you need more detail."))
    return f"{opening}{said}{closing}"


def _led_to(earlier: Outcome, later: Outcome) -> bool:
    """Tell whether the arguments of a call have a word of an earlier result."""
    known = set(re.findall(r"[\w-]+", shown(earlier.data).lower()))
    return not known.isdisjoint(re.findall(r"[\w-]+", shown(list(later.call.arguments.values())).lower()))


def _prose(data: Any) -> Iterator[str]:
    """Yield the texts in a result: itself, or the long values in it."""
    if isinstance(data, str):
        yield data
    elif isinstance(data, Mapping | list):
        values = data.values() if isinstance(data, Mapping) else data
        yield from (text for value in values for text in _prose(value) if len(text.split()) >= _PROSE_WORDS)


def _quoted(texts: Sequence[str], question: str, rng: Random, flaws: Flaws, short: int) -> str:
    """Tell what texts say on a question."""
    if _COUNTS.search(question) and len(texts) == 1 and (counted := _lines_counted(texts[0], question)):
        return counted
    words = sum(len(text.split()) for text in texts)
    if words <= _SHORT:
        return "\n".join(texts)
    if _HEADINGS.search(question):
        return "\n".join(line for text in texts for line in text.splitlines() if line.startswith("#"))
    # What a search showed is on the page that was opened, too.
    found = {each.text: each for text in texts for each in passages(text)}
    chosen = best_passages([*found.values()], question, 4)
    if not chosen and rng.random() < flaws.clutches:
        chosen = [*found.values()][:2]
    if not chosen and words <= short:
        return "\n".join(texts)
    if len(chosen) > 1 and rng.random() < flaws.overlooks:
        chosen.pop(rng.randrange(len(chosen)))
    return " ".join(f"{each.text}\n\n```\n{each.code}\n```\n\n" if each.code else each.text for each in chosen).strip()


def _lines_counted(text: str, question: str) -> str:
    """Count the lines of a listing: those of the kind asked for, where lines begin with one, as in `[FILE] a.txt`."""
    lines = [line for line in text.splitlines() if line.strip()]
    told = any(re.search(r"\d", line) and nearness(line, stems(question) - FORM) for line in lines)
    if told or len(lines) < 2 or sum(map(len, lines)) / len(lines) > 80 or re.search(r"[.!?]$", lines[0]):
        return ""
    marked = [
        line
        for line in lines
        if (mark := re.match(r"\W*\[(\w+)\]", line)) and shares_stem(stem(mark[1].lower()), stems(question))
    ]
    return f"There are {len(marked or lines)}: " + ", ".join(line.strip() for line in (marked or lines)[:12]) + "."


def _told(outcome: Outcome, conversation: Conversation) -> str:
    """Tell of the records of one result what was asked: a count, a sum, the largest, or the fields of the nearest."""
    head, rows = records(outcome.data, columns_of(outcome, conversation))
    question = conversation.subject
    if not rows:
        return f"{shown(outcome.data)}." if not isinstance(outcome.data, list) else "There are 0."
    if len(rows) == 1 and not head and isinstance(outcome.data, Mapping):
        return _fields(rows[0], question, outcome)
    alike_rows: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for row in rows:
        alike_rows.setdefault(tuple(row), []).append(row)
    # Lists of several kinds are told each: what a thing is, and what it has to do with others.
    groups = [*alike_rows.values()] if len(alike_rows) <= _MOST_KINDS else [rows]
    kept: list[Mapping[str, Any]] = []
    for group in groups:
        meant = _meant(group, conversation.question, outcome)
        kept += meant if len(groups) == 1 or len(meant) < max(len(group), 2) else []
    kept = kept or _meant(rows, conversation.question, outcome)
    lines = []
    if head:
        lines.append(_listed(dict(list(head.items())[:_MOST_FIELDS])))
    lower = set(re.findall(r"\w+", question.lower()))
    sums = _SUMS.search(question)
    numeric = _measure(kept, question, dated=sums is None)
    if (counted := _COUNTS.search(question)) and (
        len(kept) > 1 or not nearness(shown(kept), stems(question[counted.end() :].split()[0]))
    ):
        lines.append(f"There are {len(kept)}")
    found = {at: _amount(row.get(numeric)) for at, row in enumerate(kept) if numeric}
    amounts = {at: amount for at, amount in found.items() if amount is not None}
    if numeric and sums:
        total = sum(amounts.values()) / (1 if sums[1] else len(amounts))
        asked = sums[2] or ("total" if " " in sums[0] else sums[0])
        lines.append(f"The {asked.lower()} {label(numeric)} is {round(total, 4):.15g}")
    if amounts and lower & (_MOST | _LEAST):
        best = (max if lower & _MOST else min)(amounts, key=lambda at: amounts[at])
        return ". ".join([*lines[1 if head else 0 :], _fields(kept[best], question, outcome)])
    if all(list(row) == [""] for row in kept):
        return ". ".join([*lines, ", ".join(str(row[""]) for row in kept)])
    told = kept[:_MOST_RECORDS]
    return ". ".join([*lines, *(_fields(row, question, outcome, brief=len(told) > 1) for row in told)])


def _amount(value: Any) -> float | None:
    """Return a number, or a date as one that can be compared."""
    text = str(value)
    if re.fullmatch(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?", text):
        return float(text)
    return float(re.sub(r"\D", "", text)[:14]) if re.match(r"\d{4}-\d{2}-\d{2}", text) else None


def _measure(rows: Sequence[Mapping[str, Any]], question: str, *, dated: bool = True) -> str | None:
    """Return the numeric field that a question measures records by, or one of dates if it may be `dated`."""
    asked = alike(question)
    keys = rows[0] if rows else ()
    plain = [key for key in keys if key[-2:].lower() != "id" and all(_amount(row.get(key)) is not None for row in rows)]
    dates = [key for key in plain if re.match(r"\d{4}-\d\d-\d\d", str(rows[0][key]))]
    first = dates if _IN_TIME & set(re.findall(r"\w+", question.lower())) else []
    plain = [*first, *(key for key in plain if key not in dates), *(dates if dated else ())]
    named = [key for key in plain if any(shares_stem(word, asked) for word in stems(label(key)))]
    exact = [key for key in named if stems(label(key)) & stems(question)]
    return next(iter([*exact, *named, *plain]), None)


def _meant(rows: Sequence[Mapping[str, Any]], question: str, outcome: Outcome) -> list[Mapping[str, Any]]:
    """Return the records whose values the question names most of; all of them if it names none."""
    switched = stems(" ".join(label(name) for name, value in outcome.call.arguments.items() if value is True))
    asked = stems(question) - switched
    several = bool(re.match(r"(?:which|what|list)\b.{0,20}?\w{2}s\b", question, re.IGNORECASE))
    given = {shown(value) for value in outcome.call.arguments.values() if several or _weekday(value)}
    if "tomorrow" in question.lower() and len(rows) > 1 and any(_weekday(value) for value in rows[0].values()):
        return [rows[1]]

    def weight(row: Mapping[str, Any]) -> float:
        telling = [value for value in row.values() if shown(value) not in given]
        telling = [value for value in telling if not (words := stems(shown(value))) or not words <= _MONTHS]
        named = [re.escape(str(value)) for value in telling if len(str(value)) > 1]
        exact = sum(bool(re.search(rf"(?<![\w.-]){each}(?![\w-])", question, re.IGNORECASE)) for each in named)
        flags = [key for key, value in row.items() if value is True and stems(label(key)) & asked]
        return len(flags) + 2.0 * exact + len({word for value in telling for word in _named_by(value)} & asked)

    if _LACKS.search(question):
        named = [key for key in rows[0] if stems(label(key)) & asked]
        lacking = [row for row in rows if any(row.get(key) in (None, "", [], {}) for key in named)]
        if 0 < len(lacking) < len(rows):
            return lacking
    weights = [weight(row) for row in rows]
    return [row for row, each in zip(rows, weights, strict=True) if each == max(weights)]


def _named_by(value: Any) -> set[str]:
    """Return the words that a value is named by; a date has its weekday's name, too."""
    return stems(shown(value)) | ({stem(day)} if (day := _weekday(value)) else set())


def _weekday(value: Any) -> str:
    try:
        return (
            f"{datetime.date.fromisoformat(str(value)[:10]):%A}".lower()
            if re.match(r"\d{4}-\d\d-\d\d", str(value))
            else ""
        )
    except ValueError:
        return ""


def _fields(row: Mapping[str, Any], question: str, outcome: Outcome, *, brief: bool = False) -> str:
    """Tell the fields of a record that the question names, after what the record is called; or else all of them."""
    filled = {key: value for key, value in row.items() if value not in (None, "", [], {})}
    if list(filled) == [""]:
        return shown(filled[""])
    asking = re.match(r"who|when|where", question.lower())
    asked = stems(question) | (alike(asking[0]) if asking else set())
    wanted = [key for key in filled if any(shares_stem(word, asked) for word in stems(label(key)))]
    names = [key for key in filled if label(key).split()[-1:] and label(key).split()[-1] in _NAMES][:2]
    if len(filled) == 1:
        (key, value), about = (
            next(iter(filled.items())),
            ", ".join(shown(each) for each in outcome.call.arguments.values()),
        )
        return f"The {label(key)}{f' for {about}' if about and len(about) < 60 else ''} is {shown(value)}"
    if brief or len(filled) > _FEW_FIELDS:
        some = list(filled)[: 5 if brief else _MOST_FIELDS]
        keys = {*names, *wanted} if set(wanted) - set(names) else {*some}
        filled = {key: value for key, value in filled.items() if key in keys}
    return _listed(filled)


def _listed(fields: Mapping[str, Any]) -> str:
    told = {label(key): shown(value) for key, value in fields.items() if value not in (None, "", [], {})}
    return "; ".join(f"{key}: {text if len(text) <= 400 else f'{text[:400]}…'}" for key, text in told.items())
