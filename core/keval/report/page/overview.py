"""The top of the page: what was run, what it found in sentences, and the verdicts of the gates."""

from __future__ import annotations

from markupsafe import Markup

from keval.report.gates import gate_rows, unmet_texts
from keval.report.headline import decided_on, origin_label
from keval.report.page.rendering import render
from keval.report.page.report import Report
from keval.report.sentences import sentences


def header(report: Report) -> Markup:
    """Render what was run, and that models were simulated or the run replayed or played, if so."""
    summary = report.summary
    label, _, told = origin_label(summary).partition(":")
    return render("header.html", manifest=report.run.manifest, summary=summary, origin=label and (label, told))


def findings(report: Report) -> Markup:
    """Render the sentences of a run."""
    return render("findings.html", sentences=sentences(report.summary))


def gates(report: Report) -> Markup:
    """Render the verdicts of the gates and the expectations that were not met; nothing without gates."""
    summary = report.summary
    return render(
        "gates.html",
        gates=gate_rows(summary.gates),
        unmet=unmet_texts(summary.unmet),
        decided=decided_on(summary.replay),
    )
