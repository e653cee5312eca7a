"""The judge's prompt: where the question, the golden answer and the response are in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import attrs

_KINDS = {
    "golden": r"(?:golden|reference|expected|correct|ideal|ground[\s_-]?truth)",
    "earlier": r"(?:earlier|history|conversation)",
    "second": r"second[\s_-](?:response|answer|output)",
    "question": r"(?:question|query|user|task|prompt)",
    "response": r"(?:response|answer|output|submission|candidate|completion|assistant)",
}
_LABEL = r"(?P<label>[A-Za-z][A-Za-z0-9 _'()/-]{1,60}?)"
_NONCE_FENCE = re.compile(
    r"^[ \t]*<(?P<label>[A-Za-z]\w*)-(?P<nonce>[0-9a-f]{6,64})>\n?(?P<body>.*?)\n?</(?P=label)-(?P=nonce)>",
    re.DOTALL | re.MULTILINE,
)
"""<golden_answer-3f9ac21b> ... </golden_answer-3f9ac21b>, opened where a line starts; nothing inside can close it."""
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
    """The parts of a judging prompt; empty where there is none. Without a `response` nothing is to be judged.

    A prompt that has a `second` response asks which of the two is better. `results` are the results of tools, in fences
    with a nonce, in their order.
    """

    question: str = ""
    golden: str = ""
    response: str | None = None
    earlier: str = ""
    second: str | None = None
    results: tuple[str, ...] = ()

    @property
    def judging(self) -> bool:
        """Whether there is something to judge, be it an empty response."""
        return self.response is not None


def sections_of(prompt: str) -> Sections:
    """Find the sections: by fences with a nonce, else by tags, headings or labels, whichever finds most of them.

    Where there are fences with a nonce, nothing else counts, and only one nonce does: what a response holds is text.
    """
    if fenced := _fenced(prompt):
        return Sections(**fenced)
    best: dict[str, Any] = {}
    for mark in _MARKS:
        found = {kind: body for label, body in _labelled(mark, prompt) if (kind := _kind(label))}
        # "Answer:" with nothing behind it asks for an answer, unless there is a golden one to hold it against.
        found = {kind: body for kind, body in found.items() if body or (kind == "response" and found.get("golden"))}
        if "response" in found and len(found) > len(best):
            best = found
    return Sections(**best)


def _fenced(prompt: str) -> dict[str, Any]:
    by_nonce: dict[str, dict[str, Any]] = {}
    for match in _NONCE_FENCE.finditer(prompt):
        found = by_nonce.setdefault(match["nonce"], {})
        if kind := _kind(match["label"]):
            found[kind] = match["body"]
        elif match["label"].startswith("tool_result_"):
            found["results"] = (*found.get("results", ()), match["body"])
    found = max(by_nonce.values(), key=len, default={})
    return found if "response" in found else {}


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
