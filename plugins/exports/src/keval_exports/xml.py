"""Elements of XML 1.0 as text, with every character in them escaped or replaced."""

from __future__ import annotations

import re
from xml.sax.saxutils import escape as _escape

__all__ = ["close_tag", "element", "open_tag"]

_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 does not allow, escaped or not: section 2.2."""
_BREAKS = {"\r": "&#13;"}
"""A parser turns a carriage return into a line feed, unless it is escaped: section 2.11."""
_IN_ATTRIBUTES = {**_BREAKS, "\n": "&#10;", "\t": "&#9;", '"': "&quot;"}
"""A parser turns these into spaces in attributes: section 3.3.3."""


def element(name: str, content: str = "", /, *, escape: bool = False, **attributes: object) -> str:
    """Return an element with a line break after it. `escape` says that the content is text and not XML.

    Attributes that are `None` are left out. Characters that XML does not allow become U+FFFD.
    """
    inner = _escape(_allowed(content), _BREAKS) if escape else content
    return f"{_tag(name, attributes)}{inner}</{name}>\n" if inner else f"{_tag(name, attributes)[:-1]}/>\n"


def open_tag(name: str, /, **attributes: object) -> str:
    """Return a start tag with a line break after it."""
    return f"{_tag(name, attributes)}\n"


def close_tag(name: str) -> str:
    """Return an end tag with a line break after it."""
    return f"</{name}>\n"


def _tag(name: str, attributes: dict[str, object]) -> str:
    told = {
        key: _escape(_allowed(str(value)), _IN_ATTRIBUTES) for key, value in attributes.items() if value is not None
    }
    return "".join(["<", name, *(f' {key}="{value}"' for key, value in told.items()), ">"])


def _allowed(text: str) -> str:
    return _FORBIDDEN.sub("\ufffd", text)
