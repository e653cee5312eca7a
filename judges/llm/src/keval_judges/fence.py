"""Fences: putting foreign text into a prompt so that nothing in it can end the place where it stands."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from hashlib import blake2b

__all__ = ["fence", "fence_code", "shown"]

_CODE_LENGTH = 8

# Control characters but tab and line ends, zero-width and direction-changing characters, annotations, lone surrogates
# (which no UTF-8 can hold), and the tag and variation characters by which text is smuggled. Joiners and plain direction
# marks stay, because Persian, Hindi, Hebrew and emoji are written with them.
_UNSEEN = re.compile(
    "(["
    "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"
    "\u200b\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff"
    "\U000e0000-\U000e007f\U000e0100-\U000e01ef"
    "])\\1*"
)

# Servers that build their prompt from a template read these as the end of a message wherever they stand. The first
# character is enough to break one.
_STEERING = re.compile(
    r"<(?=[|｜][^<>\s]{1,60}[|｜]>)"
    r"|<(?=/?s>|/?<?SYS>>|(?:start|end)_of_turn>|bos>|eos>)"
    r"|\[(?=/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS)\])",
    re.IGNORECASE,
)


def shown(text: str) -> str:
    """Return a text with what cannot be seen, and what steers chat templates, written as codes: `[U+202E]`.

    A run of one and the same character is written once, with its length. All else stays as it is.
    """
    return _STEERING.sub(_code, _UNSEEN.sub(_code, text))


def _code(found: re.Match[str]) -> str:
    run = found[0]
    times = f", {len(run)} times" if len(run) > 1 else ""
    return f"[U+{ord(run[0]):04X}{times}]"


def fence_code(texts: Iterable[str]) -> str:
    """Derive the code that the tags around these texts carry: the same for the same texts, and found in none of them.

    As all texts go into it, whoever writes one of them would have to know the others to foretell it. It is not found in
    another case or width either.
    """
    everything = "\0".join(texts)
    searched = everything if everything.isascii() else unicodedata.normalize("NFKC", everything)
    searched = searched.casefold()
    digest = blake2b(everything.encode()).hexdigest()
    while digest[:_CODE_LENGTH] in searched:
        digest = blake2b(digest.encode()).hexdigest()
    return digest[:_CODE_LENGTH]


def fence(label: str, text: str, code: str) -> str:
    """Return a text between its tags."""
    return f"<{label}-{code}>\n{text}\n</{label}-{code}>"
