"""`keval export --format otlp`: traces and logs that OpenTelemetry's own messages take."""

from __future__ import annotations

import base64
import json
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import attrs
import orjson
import pytest
from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status

from keval import Run, Sample, ToolCall, Transcript, Trial
from keval_exports.otlp import Otlp
from keval_exports.otlp_records import Trace
from tests.conftest import Project
from tests.plugins.exports.conftest import HOSTILE

IDS = {"traceId", "spanId", "parentSpanId"}
"""What OTLP writes in hexadecimal, and Protocol Buffers' own JSON in base64."""


def as_proto(data: Any) -> Any:
    if isinstance(data, dict):
        return {
            key: base64.b64encode(bytes.fromhex(value)).decode() if key in IDS else as_proto(value)
            for key, value in data.items()
        }
    return [as_proto(item) for item in data] if isinstance(data, list) else data


def spans_in(bodies: list[bytes]) -> list[Span]:
    requests = [ParseDict(as_proto(orjson.loads(body)), ExportTraceServiceRequest()) for body in bodies]
    return [
        span
        for request in requests
        for each in request.resource_spans
        for scope in each.scope_spans
        for span in scope.spans
    ]


def records_in(bodies: list[bytes]) -> list[LogRecord]:
    requests = [ParseDict(as_proto(orjson.loads(body)), ExportLogsServiceRequest()) for body in bodies]
    return [
        record
        for request in requests
        for each in request.resource_logs
        for scope in each.scope_logs
        for record in scope.log_records
    ]


def told(of: Span | LogRecord) -> dict[str, Any]:
    """The attributes, which are all texts, numbers and truth values, or lists of texts."""
    values = {pair.key: pair.value for pair in of.attributes}
    return {
        key: [item.string_value for item in value.array_value.values]
        if value.WhichOneof("value") == "array_value"
        else getattr(value, str(value.WhichOneof("value")))
        for key, value in values.items()
    }


@attrs.frozen
class Exported:
    spans: list[Span]
    records: list[LogRecord]

    def trace(self, trial: str) -> list[Span]:
        (root,) = [span for span in self.spans if told(span).get("keval.trial") == trial]
        return [span for span in self.spans if span.trace_id == root.trace_id]

    @property
    def roots(self) -> list[Span]:
        return [span for span in self.spans if not span.parent_span_id]


@pytest.fixture(scope="module")
def exported(hostile: Run, tmp_path_factory: pytest.TempPathFactory) -> Exported:
    traces, logs = Otlp().export(hostile, tmp_path_factory.mktemp("otlp")).files
    return Exported(spans_in(traces.read_bytes().splitlines()), records_in(logs.read_bytes().splitlines()))


def test_every_trial_is_a_trace_with_the_agent_at_its_root(exported: Exported, hostile: Run) -> None:
    trials = {trial.id: trial for trial in hostile.trials()}

    assert [*trials] == [told(root)["keval.trial"] for root in exported.roots]
    assert len(trials) == len({root.trace_id for root in exported.roots})
    for root in exported.roots:
        about, trial = told(root), trials[told(root)["keval.trial"]]
        assert ("invoke_agent odd.one", Span.SPAN_KIND_INTERNAL) == (root.name, root.kind)
        assert ("invoke_agent", "unknown", "odd.one") == tuple(
            about[f"gen_ai.{key}"] for key in ("operation.name", "provider.name", "agent.name")
        )
        assert (trial.sample.id, trial.condition) == (about["keval.sample"], about["keval.condition"])
        assert trial.transcript is not None
        assert trial.transcript.started is not None
        assert trial.transcript.duration is not None
        assert abs(root.start_time_unix_nano / 1e9 - trial.transcript.started) < 1e-6
        assert abs((root.end_time_unix_nano - root.start_time_unix_nano) / 1e9 - trial.transcript.duration) < 1e-3


def test_what_was_said_is_told_as_messages(exported: Exported) -> None:
    about = told(exported.trace(f"odd.one/with notes/{HOSTILE}/1")[0])
    turns = told(exported.trace("odd.one/baseline/turns/1")[0])

    prompt = [{"type": "text", "content": f"Answer {HOSTILE}.\n\n=notes"}]
    assert prompt == json.loads(about["gen_ai.system_instructions"])
    assert [{"role": "user", "parts": [{"type": "text", "content": HOSTILE}]}] == json.loads(
        about["gen_ai.input.messages"]
    )
    (answer,) = json.loads(about["gen_ai.output.messages"])
    assert ("assistant", True) == (answer["role"], answer["parts"][0]["content"].endswith(HOSTILE))
    said = [(each["role"], each["parts"][0]["content"]) for each in json.loads(turns["gen_ai.input.messages"])]
    assert [("user", "Hi"), ("user", "First?"), ("assistant", "First?"), ("user", "And then?")] == said
    assert "gen_ai.system_instructions" not in turns


def test_calls_of_models_and_tools_are_spans_below_the_agent(exported: Exported) -> None:
    root, *calls = exported.trace("odd.one/baseline/a/1")

    assert Counter(["chat", "execute_tool =find", "execute_tool find", "chat"]) == Counter(span.name for span in calls)
    assert {root.span_id} == {span.parent_span_id for span in calls}
    assert 5 == len({span.span_id for span in (root, *calls)})
    begins = [span.start_time_unix_nano for span in calls]
    assert sorted(begins) == begins
    for span in calls:
        assert root.start_time_unix_nano <= span.start_time_unix_nano <= span.end_time_unix_nano
        assert span.end_time_unix_nano <= root.end_time_unix_nano
    found, lost = (next(span for span in calls if span.name == f"execute_tool {name}") for name in ("=find", "find"))
    assert {"where": HOSTILE} == json.loads(told(found)["gen_ai.tool.call.arguments"])
    assert HOSTILE == told(found)["gen_ai.tool.call.result"]
    assert (Status.STATUS_CODE_ERROR, "no such place \x01") == (lost.status.code, lost.status.message)
    assert "tool_error" == told(lost)["error.type"]
    assert {Span.SPAN_KIND_CLIENT} == {span.kind for span in calls if span.name == "chat"}
    # Two model calls of 7 and 2 tokens.
    assert (14, 4) == tuple(told(root)[f"gen_ai.usage.{kind}_tokens"] for kind in ("input", "output"))


def test_a_failed_trial_is_an_error(exported: Exported) -> None:
    down, busy = (exported.trace(f"odd.one/baseline/{name}/1")[0] for name in ("down", "busy"))

    assert (Status.STATUS_CODE_ERROR, "it is out ]]> \x01") == (down.status.code, down.status.message)
    assert "told" == told(down)["error.type"]
    assert (Status.STATUS_CODE_UNSET, 1) == (busy.status.code, told(busy)["keval.discarded_attempts"])


def test_every_score_is_an_event_of_its_trial(exported: Exported, hostile: Run) -> None:
    roots = {told(root)["keval.trial"]: root for root in exported.roots}

    expected = Counter(
        (line.trial, line.metric, line.judge, line.score.value, line.score.reason) for line in hostile.scores()
    )

    found = [(record, told(record)) for record in exported.records]
    assert expected == Counter(
        (
            about["keval.trial"],
            about["gen_ai.evaluation.name"],
            about.get("keval.judge"),
            about.get("gen_ai.evaluation.score.value"),
            about.get("gen_ai.evaluation.explanation", ""),
        )
        for _, about in found
    )
    for record, about in found:
        root = roots[about["keval.trial"]]
        assert "gen_ai.evaluation.result" == record.event_name
        assert (root.trace_id, root.span_id) == (record.trace_id, record.span_id)
        assert root.end_time_unix_nano == record.time_unix_nano


def test_scores_have_the_labels_of_their_bands_and_the_failures_of_judges(exported: Exported) -> None:
    by_slot = {
        (about["keval.sample"], about["gen_ai.evaluation.name"], about.get("keval.judge")): (
            record.severity_number,
            about,
        )
        for record, about in ((record, told(record)) for record in exported.records)
        if about["keval.condition"] == "baseline"
    }

    assert "low" == by_slot["turns", "double/grade", None][1]["gen_ai.evaluation.score.label"]
    assert "unscored" == by_slot["a", "double/grade", None][1]["gen_ai.evaluation.score.label"]
    severity, failed = by_slot["a", "double/brevity", "reader"]
    assert (17, "bad_reply") == (severity, failed["error.type"])
    assert [HOSTILE] == by_slot[HOSTILE, "double/brevity", "reader"][1]["keval.unverified_claims"]


def test_ids_of_two_runs_differ(hostile: Run) -> None:
    other = attrs.evolve(hostile.manifest, run="another")
    trial = next(hostile.trials())

    assert Trace(hostile.manifest, trial, content=True).id != Trace(other, trial, content=True).id


def test_content_is_left_out_on_request(project: Project, hostile: Run) -> None:
    outcome = project.keval("export", str(hostile.path), "--format", "otlp", "--no-content", "--to", "out")

    text = "".join(Path(path).read_text(encoding="utf-8") for path in outcome.stdout.splitlines())
    assert 0 == outcome.code
    for said in ("Answer ", "=notes", "Calls?", "no such place", "as always", "where"):
        assert said not in text
    assert "odd.one/baseline/busy/1" in text


def test_a_run_that_tells_no_times_begins_its_traces_with_the_run(hostile: Run) -> None:
    call = ToolCall("find", result="found", duration=0.5)
    old = Transcript(tool_calls=(call,), model_calls=2, duration=1.5)
    trace = Trace(hostile.manifest, Trial("t", Sample("s", "?"), "odd.one", "baseline", 1, old), content=True)

    spans = [*trace.spans()]

    assert ["invoke_agent odd.one"] == [span["name"] for span in spans]
    assert 1_500_000_000 == int(spans[0]["endTimeUnixNano"]) - int(spans[0]["startTimeUnixNano"])
    assert 3 == trace.untold()
    assert hostile.manifest.started == datetime.fromtimestamp(trace.start, UTC).isoformat(timespec="seconds")
