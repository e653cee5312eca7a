"""Names of an answer, identifiers and code among them, and others of the same class in their place."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from random import Random

import attrs

from keval import Sample
from keval_instrument.answer_parts import is_function_word, outside_blocks, prose

_CALENDAR = """
    January February March April May June July August September October November December
    Monday Tuesday Wednesday Thursday Friday Saturday Sunday
"""
_CYCLES = {"month": _CALENDAR.split()[:12], "weekday": _CALENDAR.split()[12:]}
_CODE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
_TOKEN = re.compile(r"(?<![\w/.@~-])[~./]{0,2}[^\W\d_][\w.+/-]*\w")
_CAPITAL = re.compile(r"(?<!\w)[^\W\d_a-z][\w’'-]*(?: (?:(?:de|da|do|del|la|von|van|of) )?[^\W\d_a-z][\w’'-]*)*")
_PARTICLES = ("de", "da", "do", "del", "la", "von", "van", "of")
_MEASURES = """
    KiB MiB GiB TiB kB MB GB TB kHz MHz GHz kW kWh MW UTC AM PM CET GMT km/h m/s Celsius Fahrenheit Kelvin
"""
_UNITS = frozenset(_MEASURES.split())
_BEGINS = re.compile(r"(?:^|[^\w,;%°)\]’'\"”/&–—\s*_-]|^[ \t]*(?:[-*+•]|\d{1,3}[.)]))[ \t]*[\"'“‘(*_]*$", re.MULTILINE)
_EXAMPLE = re.compile(r"\b(?:such as|e\.g\.|for example|for instance|like)\b[^.;\n)]*")


@attrs.frozen
class Name:
    """A name in a text, from offset `start` to `end`, and the class of names that may stand in its place."""

    start: int
    end: int
    text: str
    kind: str


@attrs.frozen
class Vocabulary:
    """What the samples say by which names are known: `proper` are words that begin one, wherever they stand.

    `names` are those of golden answers, by class.
    """

    proper: frozenset[str]
    names: Mapping[str, Sequence[str]]

    @classmethod
    def of(cls, samples: Iterable[Sample]) -> Vocabulary:
        """Read the questions and golden answers of samples."""
        samples = [*samples]
        texts = [text for sample in samples for text in (*sample.asked, sample.answer or "")]
        lower = {word for text in texts for word in re.findall(r"\b[^\W\d_A-Z][\w’'-]*", text)}
        rows = [words for text in texts for _, words in _rows(prose(text), frozenset())]
        inner = {" ".join(words[:count]) for words in rows for count in (1, 2)}
        known = cls(frozenset(name for name in inner if name.lower() not in lower), {})
        names: defaultdict[str, dict[str, None]] = defaultdict(dict)
        for sample in samples:
            for name in known.names_of(sample.answer or ""):
                names[name.kind][name.text] = None
        return attrs.evolve(known, names={kind: [*found] for kind, found in names.items()})

    def names_of(self, text: str) -> list[Name]:
        """Return the names in a text, but for those of examples and in blocks of code."""
        outside = outside_blocks(text)
        ignored = [*_EXAMPLE.finditer(prose(outside))]
        found: list[Name] = []
        proper = [*self._proper(prose(outside))]
        rows = [name for name in proper if " " in name.text]
        # Of kinds that overlap, the first one counts: code, names of several words, identifiers, single words.
        for name in (*_code(outside), *rows, *_tokens(prose(outside)), *proper):
            if any(name.start < other.end and other.start < name.end for other in found):
                continue
            if not any(each.start() <= name.start < each.end() for each in ignored):
                found.append(name)
        return sorted(found, key=lambda name: name.start)

    def _proper(self, text: str) -> Iterator[Name]:
        """Yield capitalised words within sentences, and those at their beginning that are names elsewhere."""
        for begin, words in _rows(text, self.proper):
            at = begin
            for said in _names(words):
                start = text.index(said, at)
                at = start + len(said)
                yield Name(start, at, said, _class_of(said))


def _rows(text: str, proper: Collection[str]) -> Iterator[tuple[int, Sequence[str]]]:
    """Yield rows of capitalised words, with their offsets: those within sentences, and those of `proper` names."""
    for found in _CAPITAL.finditer(text):
        words = [*takewhile(lambda word: word[0].isupper() or word in _PARTICLES, found[0].split(" "))]
        at = found.start()
        if not words:
            continue
        line = text[text.rfind("\n", 0, at) + 1 : at]
        if _BEGINS.search(line) and words[0] not in proper and " ".join(words[:2]) not in proper:
            first, *words = words
            at += len(first) + 1
            # What follows another word than "in" may be but the rest of a heading.
            if not words or not (is_function_word(first) or words[0] in proper or words[0] in _CALENDAR.split()):
                continue
        yield at, words


def _names(words: Sequence[str]) -> Iterator[str]:
    """Yield the names that a row of capitalised words consists of: days and months are names of their own."""
    row: list[str] = []
    for word in [*words, ""]:
        bare = re.sub(r"[’'](?:s|d|ll|m|re|ve)?$|-$", "", word)
        is_alone = (
            not bare
            or (not row and bare in _PARTICLES)
            or bare in _CALENDAR.split()
            or (is_function_word(bare) and bare != "of")
        )
        if not is_alone:
            row.append(bare)
        if row and (is_alone or bare != word):
            if len(said := " ".join(row)) > 1 and said not in _UNITS and said[1] != "-":
                yield said
            row = []
        if bare in _CALENDAR.split():
            yield bare


def _class_of(said: str) -> str:
    for kind, cycle in _CYCLES.items():
        if said in cycle:
            return kind
    return "acronym" if said.isupper() else "name"


def _code(text: str) -> Iterator[Name]:
    for found in _CODE.finditer(text):
        said = found[1]
        if re.search(r"[^\W\d_]{2}", said) and said.lower() not in ("true", "false", "none", "null"):
            yield Name(found.start(1), found.end(1), said, _code_class(said))


def _tokens(text: str) -> Iterator[Name]:
    """Yield what looks like an identifier, a path or a name of a file."""
    for found in _TOKEN.finditer(text):
        said = found[0]
        if said in _UNITS or (said[0] in "./~" and len(said) < 3):
            continue
        inner = re.search(r"\d|_|[a-zà-ÿ][A-Z]|[A-Z]{2,}[a-z]|\w\.\w{2,5}$|^[~.]?/\w|/.*/", said)
        if inner and not re.fullmatch(r"(?:[^\W\d_]\.)+[^\W\d_]", said):
            yield Name(found.start(), found.end(), said, _code_class(said))


def _code_class(said: str) -> str:
    if re.match(r"--?\w", said):
        return "option"
    if " " in said:
        return "command"
    if "/" in said or said[0] in ".~":
        return "path"
    if re.fullmatch(r"[A-Z][A-Z0-9_]+", said):
        return "constant"
    return "identifier"


@attrs.frozen
class Known:
    """What is known besides an answer: its question, and what other samples say."""

    question: str
    vocabulary: Vocabulary
    others: Sequence[str] = ()
    """Golden answers to other questions."""


def damaged(text: str, known: Known, rng: Random, *, every: bool) -> tuple[str, list[str]] | None:
    """Return a text with one name replaced, or each, and what was; `None` if that cannot be done.

    One that the question does not have is preferred. A name is replaced wherever it stands, by one of the same class
    from another answer. Where each is to be replaced, there have to be two.
    """
    found = known.vocabulary.names_of(text)
    distinct = list(dict.fromkeys((name.text, name.kind) for name in found))
    if not every:
        # The sort is stable, so that names which are equally good stay in random order.
        distinct = rng.sample(distinct, len(distinct))
        distinct.sort(key=lambda name: name[0].lower() in known.question.lower())
    other: dict[str, str] = {}
    for said, kind in distinct:
        pool = _replacing(said, kind, f"{known.question}\n{text}", known.vocabulary)
        if choices := [name for name in pool if name not in other.values()]:
            other[said] = rng.choice(choices)
            if not every:
                break
    if len(other) < (2 if every else 1):
        return None
    # From the end, so that the offsets of the names before stay right.
    for name in reversed(found):
        if name.text in other:
            text = text[: name.start] + other[name.text] + text[name.end :]
    return text, [f"{said} → {new}" for said, new in other.items()]


def _replacing(said: str, kind: str, known: str, vocabulary: Vocabulary) -> list[str]:
    """Return names of a class that share no word with what is `known`; without any, those with another number."""
    if (cycle := _CYCLES.get(kind)) is not None:
        return [
            name for name in cycle if (cycle.index(name) - cycle.index(said)) % len(cycle) > 1 and name not in known
        ]
    plain = known.lower()
    words = {*re.findall(r"\w{2,}", plain)}
    pool = [
        name
        for name in vocabulary.names.get(kind, ())
        if name.lower() not in plain and not (kind == "name" and words & {*re.findall(r"\w{2,}", name.lower())})
    ]
    if pool:
        return [name for name in pool if len(name.split()) == len(said.split())] or pool
    numbered = re.fullmatch(r"(.*?[^\W\d].*?)(\d{1,4})", said)
    if numbered is None or kind == "name":
        return []
    return [f"{numbered[1]}{int(numbered[2]) + step}" for step in (2, 3, 4)]
