"""An answer that says the same: padded with what says nothing, or in other words."""

from __future__ import annotations

import json
import re
from random import Random

from keval_instrument.answer_parts import HIDDEN, WORDS, is_data, is_english, marker_of, prose, statements
from keval_instrument.name_damage import Vocabulary
from keval_instrument.number_damage import numbers

_OPENINGS, _CLOSINGS, _SYNONYMS = (WORDS[name] for name in ("openings", "closings", "synonyms"))
# The longest phrases first, as an alternation takes the first that fits.
_WORDS = re.compile(
    rf"(?<![\w{HIDDEN}-])(?:{'|'.join(sorted(map(re.escape, _SYNONYMS), key=len, reverse=True))})(?![\w{HIDDEN}-])",
    re.IGNORECASE,
)
_LEADS = ("In short:", "To answer the question:", "The answer is as follows:", "Put differently:")
_ENOUGH = 2
"""Other words in an answer from which on it needs nothing else to be reworded."""


def padded(text: str, rng: Random) -> str | None:
    """Return a text with sentences around it that say nothing, at least twice as long; `None` if it is not English."""
    if is_data(text) or not re.search(r"\w", text) or not is_english(text):
        return None
    before, after = rng.choice(_OPENINGS), rng.sample(_CLOSINGS, 1)
    while len(before) + len(" ".join(after)) < len(text):
        # No sentence comes again before all others have come.
        after.append(rng.choice([closing for closing in _CLOSINGS if closing not in after[-(len(_CLOSINGS) - 1) :]]))
    if "\n" in text.strip():
        return "\n\n".join([before, text.strip(), " ".join(after)])
    stop = "" if re.search(r"[.!?…:)]\W*$", text.strip()) else "."
    return " ".join([before, f"{text.strip()}{stop}", *after])


def reworded(text: str, rng: Random) -> str | None:
    """Return a text that says the same in other words, or in another form; `None` if that cannot be done by rules."""
    if is_data(text):
        return _reformatted(text)
    if not re.search(r"\w", text) or not is_english(text):
        return None
    said, count = text, 0
    # From the end, so that the offsets of the matches before stay right.
    for found in reversed([*_WORDS.finditer(prose(text))]):
        other = _SYNONYMS[found[0].lower()]
        other = other.capitalize() if found[0][0].isupper() else other
        said, count = f"{said[: found.start()]}{other}{said[found.end() :]}", count + 1
    stated, lines = statements(said), [line for line in said.splitlines() if line.strip()]
    if len(stated) > 1 and len(lines) == 1:
        return "\n".join(f"- {part.of(said)}" for part in stated)
    if len(stated) > 1 and len({part.line for part in stated if marker_of(said, part)}) == len(lines):
        return " ".join(re.sub(r"(?<=[\w)`*%°])$", ".", part.of(said).strip()) for part in stated)
    lead = rng.choice(_LEADS)
    return said if count >= _ENOUGH else f"{lead} {said}" if len(lines) == 1 else f"{lead}\n\n{said}"


def _reformatted(text: str) -> str | None:
    """Return JSON with other white space; `None` if it is none."""
    try:
        data = json.loads(text)
    except ValueError:
        return None
    forms = [json.dumps(data, ensure_ascii=False, indent=indent) for indent in (2, None)]
    return next((form for form in forms if form != text.strip()), None)


def keeps_facts(golden: str, text: str, vocabulary: Vocabulary) -> bool:
    """Return whether a text has all numbers and names of a golden answer, and no other numbers."""
    plain = text.lower()
    known, found = ({number.text.lower() for number in numbers(each)} for each in (golden, text))
    return (
        found <= known
        and all(number in plain for number in known)
        and all(name.text.lower() in plain for name in vocabulary.names_of(golden))
    )
