"""Sections: finding the question, the golden answer and the response inside a judge's prompt."""

from __future__ import annotations

import re
from collections.abc import Iterator

import attrs

__all__ = ["Sections", "sections_of"]

_KINDS = {
    "golden": r"(?:golden|reference|expected|correct|ideal|ground[\s_-]?truth)",
    "question": r"(?:question|query|user|task|prompt)",
    "response": r"(?:response|answer|output|submission|candidate|completion|assistant)",
}
_LABEL = r"(?P<label>[A-Za-z][A-Za-z0-9 _'()/-]{1,60}?)"
_MARKS = (
    # <golden_answer> ... </golden_answer>
    re.compile(r"<(?P<label>[A-Za-z][\w -]*)>\s*(?P<body>.*?)\s*</(?P=label)>", re.DOTALL),
    # ## Golden answer, **Golden answer**, === Golden answer ===, [Golden answer], on a line of their own
    re.compile(rf"^\s*(?:#+|\*\*|[=-]{{2,}}|\[+)\s*{_LABEL}\s*:?\s*(?:\*\*|[=-]{{2,}}|\]+)?\s*:?\s*$", re.MULTILINE),
    # Golden answer: text, at the start of a line
    re.compile(rf"^\s*(?:\*\*)?{_LABEL}(?:\*\*)?\s*:(?:\*\*)?[ \t]*", re.MULTILINE),
)
_FENCE = re.compile(r"^\s*(```|~~~|\"\"\"|<<<|---)\w*\n(?P<body>.*?)\n\s*(?:\1|>>>)\s*$", re.DOTALL)


@attrs.frozen
class Sections:
    """The parts of a judging prompt; empty where there is none."""

    question: str = ""
    golden: str = ""
    response: str = ""

    @property
    def judging(self) -> bool:
        """Whether there is something to judge."""
        return bool(self.response)


def sections_of(prompt: str) -> Sections:
    """Find the sections, by tags, by headings or by labels, whichever of these finds most of them."""
    best: dict[str, str] = {}
    for mark in _MARKS:
        found = {kind: body for label, body in _labelled(mark, prompt) if (kind := _kind(label)) and body}
        if "response" in found and len(found) > len(best):
            best = found
    return Sections(**best)


def _labelled(mark: re.Pattern[str], prompt: str) -> Iterator[tuple[str, str]]:
    matches = list(mark.finditer(prompt))
    if "body" in mark.groupindex:
        for match in matches:
            yield match["label"], _bare(match["body"])
        return
    # A section ends where the next of a known kind, or the next heading, begins.
    known = [match for match in matches if _kind(match["label"]) or mark is _MARKS[1]]
    for index, match in enumerate(known):
        end = known[index + 1].start() if index + 1 < len(known) else len(prompt)
        yield match["label"], _bare(prompt[match.end() : end])


def _kind(label: str) -> str | None:
    """Return what a label announces; "golden answer" is golden, "answer" alone is the response."""
    words = label.lower().replace("_", " ").strip()
    if len(words.split()) > 5:
        return None
    return next((kind for kind, pattern in _KINDS.items() if re.search(rf"\b{pattern}s?\b", words)), None)


def _bare(body: str) -> str:
    body = body.strip()
    fenced = _FENCE.match(body)
    return fenced["body"].strip() if fenced else body
