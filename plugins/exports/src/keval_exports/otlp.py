"""A run as OpenTelemetry traces and logs in files, by the conventions for generative AI."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import attrs

from keval import Manifest, Run
from keval.plugin import Exported, dump
from keval_exports.files import exported_file
from keval_exports.otlp_records import Trace, attributes, score_record

_WORDS = {"traces": ("resourceSpans", "scopeSpans", "spans"), "logs": ("resourceLogs", "scopeLogs", "logRecords")}
"""How the parts of a request are called, from the outside in."""


@attrs.frozen
class Otlp:
    """Writes traces.jsonl and logs.jsonl; each line is a request of OTLP.

    Each trial is a trace, and each score a log record.
    """

    content: bool = attrs.field(
        default=True, metadata={"help": "Include what was said: prompts, messages, arguments, results, reasons."}
    )

    def export(self, run: Run, to: Path) -> Exported:
        """Write the run, a trial a line. Raises RunError: the run is damaged, or the folder cannot be written."""
        manifest = run.manifest
        traces, logs = to / "traces.jsonl", to / "logs.jsonl"
        trials = timeless = untold = 0
        with exported_file(traces) as of_traces, exported_file(logs) as of_logs:
            for trial in run.trials():
                trace = Trace(manifest, trial, self.content)
                of_traces.write(_request(manifest, "traces", [*trace.spans()]))
                if scores := [score_record(manifest, trace, line) for line in run.scores_of(trial.id)]:
                    of_logs.write(_request(manifest, "logs", scores))
                trials += 1
                timeless += trial.transcript is None or trial.transcript.started is None
                untold += trace.untold()
        left_out = []
        if timeless:
            left_out.append(f"{timeless} of {trials} traces begin with the run: nobody told when their trials began")
        if untold:
            left_out.append(f"{untold} calls of models and tools have no span: nobody told when they were made")
        return Exported((traces, logs), tuple(left_out))


def _request(manifest: Manifest, signal: str, records: Sequence[dict[str, Any]]) -> bytes:
    """Return the line of a request of a signal."""
    resource = {
        "service.name": "keval",
        "service.version": manifest.versions.get("keval"),
        "keval.run": manifest.run,
        "keval.evaluation": manifest.evaluation,
    }
    scope = {"name": "keval_exports", "version": version("keval-exports")}
    resources, scopes, name = _WORDS[signal]
    scoped = {"scope": scope, name: records}
    return dump({resources: [{"resource": {"attributes": attributes(resource)}, scopes: [scoped]}]}) + b"\n"
