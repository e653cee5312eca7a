"""Rendering templates: Jinja2 with autoescape, with the few filters that fragments share."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any
from urllib.parse import quote

from jinja2 import BaseLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from keval.plugin import interval, number, signed
from keval_viewer.report_page.drawing import PITCH, TILE

_LONGEST = 20_000
"""Characters of one text that the page shows."""


def render(template: str, /, **values: Any) -> Markup:
    """Render a template of this package, which escapes every value."""
    return Markup(_own().get_template(template).render(**values))  # noqa: S704


def anchor(sample: str) -> str:
    """Return the id of a question's element, which links go to: any sample's id becomes one without spaces."""
    return f"sample-{quote(sample.encode('utf-8', 'replace'), safe='')}"


def embedded(data: Any) -> Markup:
    """Return data as JSON for a script element, which no text in it can end. The element must hold data only."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    # Only `<` can end a script element or begin a comment in it; the others end a line of JavaScript.
    for char, code in (("<", "\\u003c"), ("\u2028", "\\u2028"), ("\u2029", "\\u2029")):
        text = text.replace(char, code)
    return Markup(text)  # noqa: S704


@cache
def _own() -> Environment:
    return environment(PackageLoader("keval_viewer.report_page"))


def environment(loader: BaseLoader) -> Environment:
    """Return an environment for templates that a loader finds, with autoescape, and with the filters of pages."""
    environment = Environment(
        loader=loader,
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "chance": _chance,
        "count": _counted,
        "figure": _figure,
        "label": _label,
        "number": number,
        "pretty": _pretty,
        "readable": _readable,
        "shortened": _shortened,
        "signed": signed,
    }
    environment.globals |= {"interval": interval, "PITCH": PITCH, "TILE": TILE}
    return environment


def _shortened(text: str) -> str:
    """Return a text that is at most so long, with what was cut said."""
    if len(text) <= _LONGEST:
        return text
    return f"{text[:_LONGEST]}\n… {len(text) - _LONGEST:,} more characters are in the run"


def _pretty(data: Any) -> str:
    """Return plain data as indented JSON."""
    plain = dict(data) if isinstance(data, Mapping) else data
    return _shortened(json.dumps(plain, ensure_ascii=False, indent=2, default=str))


def _readable(text: str) -> str:
    """Return a tool's result as indented JSON if it is JSON, else as it is."""
    try:
        return json.dumps(json.loads(text), ensure_ascii=False, indent=2)
    except (ValueError, RecursionError):
        return text


def _figure(value: float | None, signs: bool = False) -> str:
    """Return an amount with two significant digits or all that it has before the point: 0.0012, 1.4, 950."""
    if value is None:
        return "–"
    told = f"{value:,.0f}" if abs(value) >= 100 else f"{value:.2g}"
    return f"+{told}" if signs and value > 0 else told


def _chance(value: float | None) -> str:
    """Return a p value."""
    return "" if value is None else "< 0.001" if value < 0.001 else f"{value:.3f}"


def _counted(value: int | None) -> str:
    return "–" if value is None else f"{value:,}"


def _label(value: Any) -> str:
    """Return a value of metadata: a list as its items, a mapping as JSON."""
    if isinstance(value, list | tuple):
        return ", ".join(map(_label, value))
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
