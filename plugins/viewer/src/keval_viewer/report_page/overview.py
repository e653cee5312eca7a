"""The top of the page: what was run, what it found in sentences, and the verdicts of the gates."""

from __future__ import annotations

from markupsafe import Markup

from keval.plugin import Report
from keval_viewer.report_page.rendering import render


def header(report: Report) -> Markup:
    """Render what was run, and that models were simulated or the run replayed or played, if so."""
    summary = report.summary
    label, _, told = report.origin.partition(":")
    return render("header.html", manifest=report.run.manifest, summary=summary, origin=label and (label, told))


def findings(report: Report) -> Markup:
    """Render the sentences of a run."""
    return render("findings.html", sentences=report.sentences)


def gates(report: Report) -> Markup:
    """Render the verdicts of the gates and the expectations that were not met; nothing without gates."""
    return render("gates.html", gates=report.gates, unmet=report.unmet, decided=report.decided_on)
