"""Place names: the form in which two spellings of one name are equal."""

from __future__ import annotations

import re
import unicodedata

__all__ = ["fold"]

# Letters that Unicode does not take apart into a base letter and a mark.
_UNDIVIDED = str.maketrans({"ł": "l", "ø": "o", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe", "ı": "i"})
_GAP = re.compile(r"[\W_]+")


def fold(name: str) -> str:
    """Return `name` without case, accents and punctuation: `São Paulo` and `SAO-PAULO` are both `sao paulo`."""
    plain = unicodedata.normalize("NFKD", name).casefold().translate(_UNDIVIDED)
    letters = unicodedata.normalize("NFKD", plain)
    bare = "".join(letter for letter in letters if not unicodedata.combining(letter))
    return _GAP.sub(" ", bare).strip()
