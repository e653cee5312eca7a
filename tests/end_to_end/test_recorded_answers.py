"""Live agents get the answers that a recorded run's server gave, and the server is not there."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest

from keval import Run, ToolCall, Trial
from keval.store.run import list_runs
from keval_gateway import ChatCall, ChatReply, ChatRequest
from tests.conftest import Outcome, Project, serve_here
from tests.stdio_server import ENVIRONMENT

QUESTIONS = {"restart": "How do I restart the gateway?", "lunch": "When is lunch?"}
ABSENT = {"type": "stdio", "command": "no-such-command"}


@attrs.define
class Docs:
    """A project whose models search for what `asked` makes of a question, and repeat what they are told."""

    project: Project
    asked: Callable[[str], str] = str
    calls: Callable[[str], Sequence[tuple[str, dict[str, Any]]]] | None = None

    @property
    def reached(self) -> list[Any]:
        """The arguments of the calls that reached the server."""
        record = self.project.root / "calls.jsonl"
        return [json.loads(line)[2] for line in record.read_text(encoding="utf-8").splitlines()]

    def server(self, name: str = "docs") -> dict[str, Any]:
        args = ["-m", f"tests.end_to_end.servers.{name}", str(self.project.root / "calls.jsonl")]
        return {"type": "stdio", "command": sys.executable, "args": args, "env": ENVIRONMENT}

    def run(self, docs: dict[str, Any], *args: str, code: int = 0, **changed: Any) -> Outcome:
        """Run agents with the context `docs`, or with one derived from it that is `changed`."""
        contexts = {"docs": docs, **({"then": {"from": "docs", **changed}} if changed else {})}
        config = {
            "agents": {name: {"model": "simulated/m"} for name in ("openai", "ms")},
            "contexts": contexts,
            "conditions": {"with_docs": {"contexts": [[*contexts][-1]]}},
            "dataset": {"path": "questions.jsonl"},
            "metrics": ["basic/contains"],
            "execution": {"num_repetitions": 2, "retry": {"initial_backoff_seconds": 0}},
        }
        self.project.write(eval_yaml=json.dumps(config))

        with pytest.MonkeyPatch.context() as patch:
            serve_here(patch, self._respond)
            outcome = self.project.run("eval.yaml", *args)
        assert outcome.code == code, outcome.stderr
        return outcome

    def _respond(self, request: ChatRequest) -> ChatReply:
        results = [message for message in request.messages if message.role == "tool"]
        (question,) = (message.text for message in request.messages if message.role == "user")
        if self.calls is not None:
            planned = self.calls(question)
            if len(results) < len(planned):
                return ChatReply("", (ChatCall(*planned[len(results)]),))
            return ChatReply(" ".join(message.text for message in results))
        if not results:
            search = next(tool.name for tool in request.tools if tool.name in ("search", "find"))
            return ChatReply("", (ChatCall(search, {"query": self.asked(question)}),))
        return ChatReply(results[-1].text or "I was told nothing.")


def with_questions(project: Project) -> Docs:
    samples = [{"id": name, "question": text} for name, text in QUESTIONS.items()]
    project.write(questions_jsonl="\n".join(map(json.dumps, samples)), calls_jsonl="")
    return Docs(project)


@pytest.fixture
def docs(project: Project) -> Docs:
    return with_questions(project)


@pytest.fixture(scope="module")
def recorded_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    docs = with_questions(Project(tmp_path_factory.mktemp("recorded")))
    docs.run(docs.server(), "--record")
    return docs.project.root


@pytest.fixture
def recorded(project: Project, recorded_once: Path) -> Docs:
    """A project with a recorded run of a server that is there."""
    shutil.copytree(recorded_once, project.root, dirs_exist_ok=True)
    return Docs(project)


def runs(docs: Docs) -> list[Run]:
    return list_runs(docs.project.root / "results")


def answers(run: Run) -> dict[str, str]:
    return {trial.id: trial.output for trial in run.trials()}


def calls(trial: Trial) -> Sequence[ToolCall]:
    return trial.transcript.tool_calls if trial.transcript is not None else ()


def last(docs: Docs) -> list[Trial]:
    return [*runs(docs)[-1].trials()]


def test_live_agents_get_what_the_server_said_when_it_was_recorded(recorded: Docs) -> None:
    (before,) = runs(recorded)
    made = len(recorded.reached)

    recorded.run(ABSENT, results={"recorded": str(before.path.relative_to(recorded.project.root))})

    _, after = runs(recorded)
    assert answers(before) == answers(after)
    assert made == len(recorded.reached) == 8
    entry = after.manifest.conditions["with_docs"].servers["docs"]
    assert before.manifest.conditions["with_docs"].servers["docs"].sha256 == entry.sha256
    assert entry.answers is not None
    assert (before.id, "fail") == (entry.answers.run, entry.answers.misses)
    assert before.manifest.recording is not None
    assert before.manifest.recording.since == entry.answers.recorded


def test_call_that_the_recording_does_not_have_fails_the_trial_and_names_the_nearest(recorded: Docs) -> None:
    recorded.asked = lambda question: question.replace("gateway", "gate")
    path = str(runs(recorded)[0].path)

    recorded.run(ABSENT, code=3, results={"recorded": path})

    failures = {trial.id: trial.failure for trial in last(recorded) if trial.failure is not None}
    assert {trial.id for trial in last(recorded) if "restart" in trial.id} == {*failures}
    for failure in failures.values():
        assert ("replay", "replay_miss") == (failure.stage, failure.kind)
        assert "has no such call of `search` at the server 'docs': " in failure.message
        assert re.search(r"-.*restart the gateway\?", failure.message)
        assert re.search(r"\+.*restart the gate\?", failure.message)
    assert [()] * 8 == [trial.attempts for trial in last(recorded)]


def test_agent_is_told_of_what_the_recording_does_not_have_where_that_is_wanted(recorded: Docs) -> None:
    recorded.asked = lambda question: question.replace("gateway", "gate")
    path = str(runs(recorded)[0].path)

    recorded.run(ABSENT, results={"recorded": path, "misses": "error"})

    assert {None} == {trial.failure for trial in last(recorded)}
    calls = [
        call
        for trial in last(recorded)
        if "restart" in trial.id and trial.transcript
        for call in trial.transcript.tool_calls
    ]
    assert [True] * 4 == ["there is no recorded answer: the recording of" in str(call.error) for call in calls]
    assert [True] * 4 == ["the call of `search` differs" in str(call.error) for call in calls]


def test_server_is_asked_what_the_recording_does_not_have_where_that_is_wanted(recorded: Docs) -> None:
    recorded.asked = lambda question: question.replace("gateway", "gate")
    path = str(runs(recorded)[0].path)
    made = len(recorded.reached)

    recorded.run(recorded.server(), results={"recorded": path, "misses": "live"})

    assert [{"query": "How do I restart the gate?"}] * 4 == recorded.reached[made:]
    outputs = {trial.id.split("/")[2]: trial.output for trial in last(recorded)}
    assert "About How do I restart the gate?" in outputs["restart"]
    assert "About When is lunch?" in outputs["lunch"]


def test_tool_that_only_reads_has_the_answers_of_every_sample(recorded: Docs) -> None:
    recorded.asked = lambda question: QUESTIONS["lunch"]  # in each sample
    path = str(runs(recorded)[0].path)

    recorded.run(ABSENT, results={"recorded": path})

    assert ["About When is lunch?"] * 8 == [json.loads(trial.output)["pages"][0]["title"] for trial in last(recorded)]


@pytest.mark.slow
def test_calls_of_a_tool_that_changes_something_get_the_answers_of_their_sample_in_order(docs: Docs) -> None:
    docs.calls = lambda question: [("recover", {"where": question}), ("recover", {"where": question})]
    docs.run(docs.server("tally"), "--record")
    (before,) = runs(docs)

    docs.run(ABSENT, results={"recorded": str(before.path)})
    after = runs(docs)[1]
    docs.calls = lambda question: [("recover", {"where": QUESTIONS["lunch"]})] * 3
    docs.run(ABSENT, code=3, results={"recorded": str(before.path)})

    assert answers(before) == answers(after)
    assert 8 == len({*answers(after).values()})
    told = {trial.id: [call.result or call.error for call in calls(trial)] for trial in before.trials()}
    failures = []
    for trial in last(docs):
        if "lunch" in trial.id:
            first, second = told[trial.id]
            assert [first, second, second] == [call.result or call.error for call in calls(trial)]
        else:
            failures.append(trial.failure.message if trial.failure else "")
    assert [True] * 4 == [
        "for this sample: only trials of other samples have this call, and `recover` is not read-only" in each
        for each in failures
    ]


def test_run_with_recorded_answers_is_recorded_and_replayed_itself(recorded: Docs) -> None:
    first = runs(recorded)[0]
    recorded.run(ABSENT, "--record", results={"recorded": str(first.path)}, rename={"search": "find"})
    second = runs(recorded)[1]
    shutil.rmtree(first.path)  # what it was played from is in its own recording

    outcome = recorded.project.keval("run", "--replay", str(second.path))

    assert 0 == outcome.code, outcome.stderr
    third = runs(recorded)[1]
    assert answers(second) == answers(third)
    assert second.manifest.conditions == third.manifest.conditions


def test_recording_that_cannot_answer_is_told_at_its_place(recorded: Docs) -> None:
    (first,), root = runs(recorded), recorded.project.root
    manifest = json.loads((first.path / "manifest.json").read_text(encoding="utf-8"))
    bare = root / "bare"
    bare.mkdir()
    (bare / "manifest.json").write_text(json.dumps({**manifest, "recording": None}), encoding="utf-8")
    contexts = f"""
  docs: {{type: stdio, command: no-such-command}}
  other: {{type: stdio, command: no-such-command}}
  nowhere: {{from: docs, results: {{recorded: nowhere}}}}
  bare: {{from: docs, results: {{recorded: bare}}}}
  then: {{from: docs, results: {{recorded: {first.path}}}}}
  twice: {{from: then, results: {{recorded: {first.path}}}}}
"""

    def told(conditions: str, more: str = "") -> list[str]:
        head = "agents: {openai: {model: simulated/m}}\ndataset: {path: questions.jsonl}\nmetrics: [basic/contains]"
        text = f"{head}\nconditions: {conditions}\ncontexts:{contexts}{more}"
        recorded.project.write(eval_yaml=text)
        outcome = recorded.project.run("eval.yaml")
        assert 2 == outcome.code
        return [line.removeprefix("error:").strip() for line in outcome.stderr.replace(f"{root}/", "").splitlines()]

    nowhere, without, twice = told("{all: {contexts: [docs]}}")
    maybe = told("{all: {contexts: [docs]}}", "  maybe: {from: docs, results: {recorded: x, misses: maybe}}\n")
    recorded.project.write(eval_yaml="")
    contexts = f"\n  other: {{type: stdio, command: x, results: {{recorded: {first.path}}}}}\n"
    (foreign,) = told("{all: {contexts: [other]}}")

    assert "eval.yaml:8:45: no run at nowhere; give the directory of a run that was recorded" in nowhere
    assert "eval.yaml:9:42: bare has no recording; `keval run --record` makes one" in without
    assert (
        "eval.yaml:11:23: the results are recorded results; derive from the context that does not replace them" in twice
    )
    assert any("expected fail or live or error, got 'maybe'" in line for line in maybe)
    assert f"eval.yaml:6:3: the recording of {first.id} has no traffic of the server 'other', only of docs" in foreign
