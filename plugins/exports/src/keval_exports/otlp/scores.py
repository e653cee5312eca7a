"""A score as a log record: the event `gen_ai.evaluation.result`, which belongs to the span of the agent."""

from __future__ import annotations

import math
from typing import Any

from keval import Manifest, Scale, Score, ScoreLine
from keval.plugin import named_band
from keval_exports.otlp.encoding import attributes, nanoseconds
from keval_exports.otlp.spans import Trace

__all__ = ["score_record"]

_EVENT = "gen_ai.evaluation.result"
_INFO, _ERROR = 9, 17


def score_record(manifest: Manifest, trace: Trace, line: ScoreLine) -> dict[str, Any]:
    """Return the record of a score. Its time is that of the answer, as a run does not say when it was scored."""
    score, judgement = line.score, line.judgement
    entry = manifest.scorer(line.scorer)
    scale = entry.scale if entry is not None else None
    judge = manifest.judges.get(line.judge) if line.judge else None
    told: dict[str, Any] = {
        "gen_ai.evaluation.name": line.metric,
        "gen_ai.evaluation.score.value": None if score.value is None else float(score.value),
        "gen_ai.evaluation.score.label": _label(score, scale),
        "error.type": line.failure and line.failure.kind,
        "keval.trial": line.trial,
        "keval.sample": line.sample,
        "keval.agent": line.agent,
        "keval.condition": line.condition,
        "keval.repetition": line.repetition,
        "keval.judge": line.judge,
        "keval.judge.model": judge and judge.model,
        "keval.judge.repetition": judgement and judgement.repetition,
        "keval.scale.low": scale and float(scale.low),
        "keval.scale.high": scale and (float(scale.high) if math.isfinite(scale.high) else None),
        "keval.scale.better": scale and scale.better,
    }
    if trace.content:
        told["gen_ai.evaluation.explanation"] = score.reason or None
        told["keval.unverified_claims"] = (judgement and judgement.unverified_claims) or None
    return {
        "timeUnixNano": nanoseconds(trace.end),
        "severityNumber": _INFO if line.failure is None else _ERROR,
        "eventName": _EVENT,
        "attributes": attributes(told),
        "traceId": trace.id,
        "spanId": trace.root,
    }


def _label(score: Score, scale: Scale | None) -> str | None:
    """Return the name of a value's band, or what stands in place of a value; `None` on a scale without bands."""
    if score.value is None:
        return "unscored"
    if score.neutral:
        return "neutral"
    return named_band(scale.bands, score.value) if scale is not None else None
