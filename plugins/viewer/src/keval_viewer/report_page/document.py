"""The page: every fragment of a run in one HTML file that needs nothing from elsewhere."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path

import attrs
from markupsafe import Markup

from keval import Run
from keval.files import explained, replacing
from keval.seams.exporters import Exported
from keval_analysis.seal import SealCheck
from keval_report.report import Report
from keval_viewer.report_page.arms import differences, distributions
from keval_viewer.report_page.effects import effects
from keval_viewer.report_page.questions import MOST_BYTES, question_parts, questions, reviews, transcripts
from keval_viewer.report_page.rendering import TITLES, parts, render
from keval_viewer.report_page.slices import slices


def _read(template: str) -> Callable[[Report], Markup]:
    """Return what renders a fragment of which the template reads all from the report."""
    return lambda report: render(template, report=report)


_DRAWN = {each.__name__: each for each in (effects, questions, distributions, reviews, slices, differences)}
"""Fragments that are more than a template which reads the report."""
FRAGMENTS: Mapping[str, Callable[[Report], Markup]] = {
    name: _DRAWN.get(name) or _read(f"{name}.html") for name in ("header", "findings", *TITLES)
}
"""The parts of a page in their order, by name. Each is HTML by itself, with its text escaped."""


_MAY_BE_EMPTY = ("gates", "claims", "texts", "routing", "parts", "tools")
"""Fragments that show nothing where the report has nothing under the same name."""


def names_of(report: Report) -> tuple[str, ...]:
    """Return the names of the fragments that have something to show, in their order. Raises RunError."""
    empty = {name for name in _MAY_BE_EMPTY if not getattr(report, name)}
    empty |= set() if any(True for _ in report.run.reviews()) else {"reviews"}
    return tuple(name for name in FRAGMENTS if name not in empty)


def page(report: Report, most_bytes: int = MOST_BYTES) -> Iterator[str]:
    """Yield the whole page in parts, with at most so many bytes of transcripts, the worst first. Raises RunError."""
    # keval's own, which need no escape.
    style, script = resource("page.css"), "".join(map(resource, ("slopes.js", "page.js", "folds.js", "copy.js")))
    return parts(
        "page.html",
        title=report.summary.evaluation,
        parts={name: fragment(report) for name, fragment in FRAGMENTS.items() if name != "questions"},
        questions=question_parts(report, transcripts(report, most_bytes)),
        order=[*FRAGMENTS],
        style=Markup(style),  # noqa: S704
        script=Markup(script),  # noqa: S704
        policy=_policy(style, script),
    )


@attrs.frozen
class Html:
    """A page of the run: one file, `report.html`, that needs nothing from elsewhere."""

    def render(self, report: Report) -> Iterator[str]:
        """Yield the page of a run in parts, whose gates may be decided anew. Raises RunError."""
        return page(report)

    def export(self, run: Run, to: Path) -> Exported:
        """Write the page to the folder `to`, which is made where it is missing. Raises RunError."""
        summary = attrs.evolve(run.written_summary() or run.summary(), changed=SealCheck(run).changed())
        text = self.render(Report(run, summary))
        with explained(to):
            to.mkdir(parents=True, exist_ok=True)
        path = to / "report.html"
        with replacing(path) as file:
            file.writelines(part.encode("utf-8", "replace") for part in text)
        return Exported((path,))


def _policy(style: str, script: str) -> str:
    """Return the content security policy: nothing is fetched, and only keval's own script and style apply."""
    digests = (base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (script, style))
    # By their digests, so that no script of an answer runs, even if one got past the escapes.
    own = [f"{kind}-src 'sha256-{digest}'" for kind, digest in zip(("script", "style"), digests, strict=True)]
    # The image is the empty icon, without which a browser asks a server for one.
    return "; ".join(("default-src 'none'", *own, "img-src data:", "base-uri 'none'", "form-action 'none'"))


@cache
def resource(name: str) -> str:
    """Return a file that pages are made with, such as `page.css`."""
    return files("keval_viewer.report_page").joinpath("static", name).read_text(encoding="utf-8")
