"""What an answer consists of: statements, clauses and prose, each with its place in the text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

HIDDEN = "\ufffc"
"""Stands, in prose, for each character of code and addresses."""

_CODE = re.compile(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)|`[^`\n]+`|\bhttps?://[^\s<>\")\]]*[^\s<>\")\].,;:!?]", re.DOTALL)
# A block that is not closed reaches to the end of the text, as Markdown has it.
_FENCE = re.compile(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1[^\n]*$|\Z)", re.DOTALL | re.MULTILINE)
_MARKER = re.compile(r"[ \t]*(?:>[ \t]*)*(?:(?:[-*+•][ \t]+|\d{1,3}[.)][ \t]+)(?:\[[ xX]\][ \t]+)?)?")
_ITEM = re.compile(r"[ \t]*(?:[-*+•]|\d{1,3}[.)])[ \t]+(?=\S)")
_RULE = r"[ \t]*\|?[ \t]*:?-{2,}[-|: \t]*"
_NO_STATEMENT = re.compile(rf"[ \t]*(?:#{{1,6}} .*|[-=*_ ]{{3,}}|)|{_RULE}")
# Chinese and Japanese have no space between sentences.
_END = re.compile(r"[.!?…。！？][\"'”’)\]*_]*(?:[ \t]+|(?<=[。！？]))(?=\S)")
# Full stops that end no sentence: abbreviations, initials, and German ordinals such as "am 3. Mai".
_ABBREVIATION = re.compile(
    r"(?:\b(?:e\.g|i\.e|etc|approx|vs|cf|Dr|Mr|Mrs|Ms|St|Fig|z\.B|d\.h|bzw|ca)|(?<![°\d])(?<!\d )\b[A-Z]"
    r"|(?<![\w-])(?:[dzu]|d\. h|u\. a)|\b(?:[Aa]m|[Vv]om|[Zz]um|[Bb]is|[Ss]eit|[Dd](?:e[mnrs]|ie|as)) \d{1,2})\.$"
)
_BREAK = re.compile(
    r"; +|, +(?:and|but|so|because|which|while|where|und|aber|weil|mais|pero)\b |, +(?=\S)|(?<=\w) +(?=\()|(?<=\)) +"
)
_LEADS_IN = re.compile(
    r"(?i:since|if|when|while|as|because|although|though|unless|once|on|in|at|by|for|with|after|before|wenn|da|weil|si)\b"
)
WORDS: Mapping[str, Any] = json.loads(Path(__file__).with_name("words.json").read_text(encoding="utf-8"))
"""The words and sentences by which answers are read and changed; a list of single words is some lines of them."""


def words_of(name: str) -> list[str]:
    """Return the single words that `WORDS` has under a name."""
    return " ".join(WORDS[name]).split()


_ENGLISH, _FOREIGN = frozenset(words_of("english")), frozenset(words_of("foreign"))


@attrs.frozen
class Part:
    """A part of a text, from offset `start` to `end`; `line` is the number of the line that it stands in."""

    start: int
    end: int
    line: int

    def of(self, text: str) -> str:
        """Return the part of the text that it was read in."""
        return text[self.start : self.end]


def prose(text: str) -> str:
    """Return a text of the same length in which code and addresses are hidden."""
    return _CODE.sub(lambda found: HIDDEN * len(found[0]), text)


def outside_blocks(text: str) -> str:
    """Return a text of the same length in which blocks of code are blank."""
    return _FENCE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)


def is_english(text: str) -> bool:
    """Return whether the prose of a text may be English: by its letters, and by the commonest words."""
    words = re.findall(r"[^\W\d_]+", prose(text).lower())
    latin = [letter < "\u0250" for letter in "".join(words)]
    foreign, english = (sum(word in known for word in words) for known in (_FOREIGN, _ENGLISH))
    return 2 * sum(latin) >= len(latin) and foreign <= english


def is_function_word(word: str) -> bool:
    """Return whether a word is one of the commonest of English, which is no name."""
    return word.lower() in _ENGLISH


def is_data(text: str) -> bool:
    """Return whether a text is JSON or nothing but code, to which no sentence can be added."""
    is_json = re.fullmatch(r"\s*(?:\{.*\}|\[.*\])\s*", text, re.DOTALL) is not None
    return is_json or not re.search(r"\w", outside_blocks(text))


def statements(text: str) -> list[Part]:
    """Return sentences, list items and rows of tables; code blocks, headings and lines that say nothing are none."""
    covered = prose(outside_blocks(text))
    found: list[Part] = []
    start = 0
    lines = covered.splitlines(keepends=True)
    for number, line in enumerate(lines):
        body = line.rstrip()
        # The row above the rule of a table has the names of the columns.
        is_header = any(re.fullmatch(_RULE, line.rstrip()) for line in lines[number + 1 : number + 2])
        if _NO_STATEMENT.fullmatch(body) is None and not is_header:
            found += _sentences(covered, start, start + len(body), number)
        start += len(line)
    return found


def _sentences(text: str, start: int, end: int, number: int) -> Iterator[Part]:
    """Yield the sentences of a line; a row of a table is one."""
    marker = _MARKER.match(text, start, end)
    start = marker.end() if marker else start
    if not text.startswith("|", start):
        for found in _END.finditer(text, start, end):
            said = text[start : found.start() + 1]
            if re.search(rf"[\w{HIDDEN}]", said) and not _ABBREVIATION.search(said):
                yield Part(start, found.start() + len(found[0].rstrip()), number)
                start = found.end()
    if re.search(rf"[\w{HIDDEN}]", text[start:end]):
        yield Part(start, end, number)


def clauses(text: str, statement: Part) -> list[Part]:
    """Return the clauses of a statement, each of at least three words, with what joins it to the one before.

    The first one begins where the statement does, and the last one ends before its full stop.
    """
    covered = prose(text)
    leads_in = _LEADS_IN.match(text, statement.start) is not None
    stop = re.search(r"[.!?…。！？\"'”’)\]*_]*$", covered[statement.start : statement.end])
    end = statement.start + (stop.start() if stop else statement.end - statement.start)
    begins = [statement.start]
    for found in _BREAK.finditer(covered, statement.start, end):
        if leads_in and found[0][0] == ",":
            leads_in = False  # what stands before the comma says nothing without what comes after it
            continue
        before, after = covered[begins[-1] : found.start()], covered[found.end() : end]
        if len(before.split()) >= 3 and len(after.split()) >= 3 and before.count("(") <= before.count(")"):
            begins.append(found.start())
    return [Part(a, b, statement.line) for a, b in zip(begins, [*begins[1:], end], strict=True) if a < b]


def marker_of(text: str, part: Part) -> str:
    """Return what the line of a part begins with, if it is an item of a list, such as `- `; else an empty text."""
    found = _ITEM.match(text, text.rfind("\n", 0, part.start) + 1)
    return found[0] if found else ""


def without(text: str, parts: Iterable[Part]) -> str:
    """Return a text without some of its parts, and without lines of which nothing else is left."""
    # From the end, so that the offsets of the other parts stay right.
    for part in sorted(parts, key=lambda part: -part.start):
        before, after = text[: part.start], text[part.end :]
        line, rest = before[before.rfind("\n") + 1 :], after.partition("\n")
        if _MARKER.fullmatch(line) and not re.search(r"\w", rest[0]):
            before, after = before[: len(before) - len(line)], rest[2]
        elif after[:1].isspace() or not before.strip():
            before, after = before.rstrip(" "), after if before.strip() else after.lstrip()
        text = before + after
    return text.strip()
