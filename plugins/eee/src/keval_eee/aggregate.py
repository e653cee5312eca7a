"""The aggregate file: who measured what about one agent, and every result of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from keval import Manifest, Summary
from keval_eee.record import SCHEMA_VERSION, Record
from keval_eee.result import result
from keval_eee.text import as_texts

__all__ = ["aggregate", "results"]


def results(manifest: Manifest, summary: Summary, record: Record, threshold: float) -> list[dict[str, Any]]:
    """Describe the results of an agent that have a mean; the format has no place for those that have none."""
    scorers = {entry.scorer: entry for entry in manifest.scorers}
    trials = {entry.condition: entry for entry in summary.trials if entry.agent == record.agent}
    return [
        result(manifest, record, scorers[arm.scorer], arm, trials[arm.condition], threshold=threshold)
        for arm in summary.arms
        if arm.agent == record.agent and arm.mean is not None
    ]


def aggregate(
    manifest: Manifest, record: Record, found: Sequence[Mapping[str, Any]], *, rows: int, checksum: str
) -> dict[str, Any]:
    """Put an agent's results into a whole file; `rows` and `checksum` (SHA-256) are those of the instance file."""
    return {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": record.evaluation_id,
        "evaluation_timestamp": manifest.started,
        # The record is as old as the run: exporting it again does not make another.
        "retrieved_timestamp": record.epoch,
        "source_metadata": {
            "source_name": "keval",
            "source_type": "evaluation_run",
            "source_organization_name": "unknown",
            "evaluator_relationship": "other",
        },
        "model_info": record.model,
        "eval_library": {
            "name": "keval",
            "version": manifest.versions.get("keval", "unknown"),
            "additional_details": as_texts(
                {
                    "run": record.run,
                    "agent": record.agent,
                    "seed": manifest.seed,
                    "python": manifest.versions.get("python"),
                    "plugins": manifest.plugins,
                    "replayed_from": manifest.replay and manifest.replay.run,
                    "recorded": manifest.replay and manifest.replay.recorded,
                }
            ),
        },
        "evaluation_results": found,
        "detailed_evaluation_results": {
            "format": "jsonl",
            "file_path": str(record.rows_path),
            "hash_algorithm": "sha256",
            "checksum": checksum,
            "total_rows": rows,
        },
    }
