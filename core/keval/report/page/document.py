"""The page: every fragment of a run in one HTML file that needs nothing from elsewhere."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping
from functools import cache
from importlib.resources import files

from markupsafe import Markup

from keval.report.page.arms import distributions, tools, trials
from keval.report.page.effects import effects
from keval.report.page.making import differences, making
from keval.report.page.overview import findings, gates, header
from keval.report.page.questions import MOST_BYTES, questions, transcripts
from keval.report.page.rendering import render
from keval.report.page.report import Report
from keval.report.page.reviews import reviews
from keval.report.page.slices import slices

FRAGMENTS: Mapping[str, Callable[[Report], Markup]] = {
    "header": header,
    "findings": findings,
    "gates": gates,
    "effects": effects,
    "questions": questions,
    "distributions": distributions,
    "reviews": reviews,
    "slices": slices,
    "differences": differences,
    "trials": trials,
    "tools": tools,
    "making": making,
}
"""The parts of a page in their order, by name. Each is HTML by itself, with its text escaped."""


def page(report: Report, most_bytes: int = MOST_BYTES) -> str:
    """Return the whole page, with at most so many bytes of transcripts, the worst first. Raises RunError."""
    kept = transcripts(report, most_bytes)
    parts = {name: fragment(report) for name, fragment in FRAGMENTS.items() if name != "questions"}
    # keval's own, which need no escape.
    style, script = resource("page.css"), resource("page.js")
    return render(
        "page.html",
        title=report.summary.evaluation,
        parts={**parts, "questions": questions(report, kept)},
        order=[*FRAGMENTS],
        style=Markup(style),  # noqa: S704
        script=Markup(script),  # noqa: S704
        policy=_policy(style, script),
    )


def _policy(style: str, script: str) -> str:
    """Return the content security policy: nothing is fetched, and only keval's own script and style apply."""
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src '{_digest(script)}'",
            f"style-src '{_digest(style)}'",
            "img-src data:",  # the empty icon, without which a browser asks a server for one
            "base-uri 'none'",
            "form-action 'none'",
        )
    )


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


@cache
def resource(name: str) -> str:
    """Return a file that pages are made with, such as `page.css`."""
    return files("keval.report.page").joinpath("templates", name).read_text(encoding="utf-8")
