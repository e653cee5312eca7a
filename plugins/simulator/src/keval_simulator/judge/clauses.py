"""Clauses: where a sentence can be cut into parts, and which parts deny what they say."""

from __future__ import annotations

import re

__all__ = ["LEAD", "affirmed", "cut", "denies", "depends", "limits"]

LEAD = re.compile(r"\A\W*(yes|no)\b\s*(?:[,.:;!–—-]|$)", re.IGNORECASE)
"""A leading yes or no; it answers the question and denies nothing of its sentence."""

_CUTS = re.compile(
    # None begins with a run of spaces, which would be gone through from each of them.
    r"[,;:]\s+|[()—]\s*|\s[-–]\s+"
    r"|\s(?=(?:and|so|but|because|since|if|unless|when|while|whereas|although|though|then|which|who|without|with no)\b"
    # Followed by a verb, "that" opens a clause of its own; in "it is not true that …" it does not.
    r"|that\s+(?:never|cannot|is|are|was|were|does|do|has|have|can|\w+n['’]t)\b)",
    re.IGNORECASE,
)
_NEGATION = re.compile(
    r"\b(?:(?<!or )not(?! only| just)|never|avoid|no(?! more than| doubt|\.)|none|nothing|nobody|neither|nor|cannot"
    r"|without|wrong|incorrect|untrue|\w+n['’]t)(?!\w)",
    re.IGNORECASE,
)
_OPPOSITES = {
    "disabled": "enabled", "disable": "enable", "disables": "enables", "unsupported": "supported",
    "impossible": "possible", "unable": "able", "forbidden": "allowed", "unencrypted": "encrypted",
    "uncompressed": "compressed", "optional": "required", "unlimited": "limited", "rejects": "accepts",
}  # fmt: skip
_OPPOSITE = re.compile(rf"\b(?:{'|'.join(_OPPOSITES)})\b", re.IGNORECASE)
_CONDITION = re.compile(r"\b(?:if|unless|except|only)\b", re.IGNORECASE)
_LIMIT = re.compile(
    r"\b(?:than|until|before|after|beyond|above|below|over|under|exceeds?|anything but)\b", re.IGNORECASE
)


def cut(text: str) -> list[tuple[int, int]]:
    """Return the spans of a sentence's clauses."""
    lead = LEAD.match(text)
    spans, start = [], lead.end() if lead else 0
    for match in _CUTS.finditer(text, start):
        spans.append((start, match.end()))
        start = match.end()
    return [*spans, (start, len(text))]


def denies(clause: str) -> bool:
    """Tell whether a clause denies what it says; many negations deny it no less, only an opposite turns it round."""
    return bool(_NEGATION.search(clause)) != bool(_OPPOSITE.search(clause))


def depends(sentence: str) -> bool:
    """Tell whether a sentence depends on a condition."""
    return bool(_CONDITION.search(sentence))


def limits(clause: str) -> bool:
    """Tell whether a clause denies what is beyond a limit ("not more than 8")."""
    negation = _NEGATION.search(clause)
    return negation is not None and bool(_LIMIT.search(clause, negation.end()))


def affirmed(text: str) -> str:
    """Return a text without its negations, with the opposites of what it denies in a word."""
    return _NEGATION.sub(" ", _OPPOSITE.sub(lambda word: _OPPOSITES[word[0].lower()], text))
