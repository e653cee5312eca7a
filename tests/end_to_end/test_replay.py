"""A recorded run is replayed without models, servers and network: the same trials, by every adapter and both judges.

The recording has retries, attempts that failed, parallel calls, an image, a conversation, and trials that failed.
"""

from __future__ import annotations

import json
import socket
import subprocess
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest

from keval_doubles.disturb import Disturb, Fault
from tests.conftest import Outcome, Project
from tests.end_to_end.bookkeeping import AGENTS, GALLERY, SAMPLES, Clerk, processes, server, write
from tests.end_to_end.servers.model import gateway

REPETITIONS = 3
KEYS = ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY")
URLS = ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL")
NO_VENDOR: Mapping[str, str | None] = dict.fromkeys((*KEYS, *URLS))
"""An environment without keys, and without the addresses that led to the gateway."""

FAULTS = (
    Fault(0.08, status=429, retry_after=0),
    Fault(0.05, status=529, retry_after="in a while"),
    Fault(0.05, status=503),
    Fault(0.08, drop="before"),
    Fault(0.08, drop="midway"),
    Fault(0.05, stall_seconds=0.05),
    Fault(0.08, content_type="text/html"),
    Fault(0.08, truncate=True),
)


@attrs.frozen
class Recorded:
    """A run of one agent with its recording; the gateway and the servers of the run have ended."""

    agent: str
    project: Project
    run: Path
    processes: int


@attrs.define
class Closed:
    """Notes each process that is started, and each connection that leaves loopback, which fails."""

    commands: list[str] = attrs.field(factory=list)
    addresses: list[Any] = attrs.field(factory=list)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def record(
    agent: str, project: Project, draw: Disturb | None = None, made: Counter[Fault] | None = None, **changes: Any
) -> Recorded:
    write(project, agent, **changes)
    with gateway(Clerk(), draw, made) as environ:
        outcome = project.run("eval.yaml", "--record", "-j", "8", env=environ)
    assert 3 == outcome.code, outcome.stderr
    return Recorded(agent, project, project.run_directory(), processes(project))


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    return record("openai", Project(tmp_path_factory.mktemp("openai")))


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch) -> Closed:
    closed = Closed()
    connect, popen = socket.socket.connect, subprocess.Popen.__init__

    def guarded(self: socket.socket, address: Any) -> None:
        if self.family != socket.AF_UNIX and address[0] not in ("127.0.0.1", "::1"):
            closed.addresses.append(address)
            raise OSError(f"the network is closed: {address}")
        connect(self, address)

    def noted(self: Any, args: Any, *rest: Any, **options: Any) -> None:
        closed.commands.append(args if isinstance(args, str) else " ".join(map(str, args)))
        popen(self, args, *rest, **options)

    def resolved(host: Any, *rest: Any, **options: Any) -> Any:
        if host not in (None, "127.0.0.1", "::1", "localhost"):
            closed.addresses.append(host)
            raise OSError(f"the network is closed: {host}")
        return resolve(host, *rest, **options)

    resolve = socket.getaddrinfo
    monkeypatch.setattr(socket.socket, "connect", guarded)
    monkeypatch.setattr(socket, "getaddrinfo", resolved)
    monkeypatch.setattr(subprocess.Popen, "__init__", noted)
    return closed


def replay(recorded: Recorded, *flags: str, config: bool = True, env: Any = NO_VENDOR) -> tuple[Outcome, Path]:
    """Replay into a folder of its own, beside the recorded run."""
    folder = recorded.project.root / f"replayed-{len([*recorded.project.root.glob('replayed-*')])}"
    arguments = [str(recorded.project.root / "eval.yaml")] if config else []
    outcome = recorded.project.keval(
        "run", *arguments, "--replay", str(recorded.run), *flags, "-o", str(folder), env=env
    )
    (run,) = folder.glob("*/*/")
    return outcome, run


def different(recorded: Recorded, run: Path) -> str:
    """What `keval compare --exact` says, times included; an empty text if the runs are the same."""
    outcome = recorded.project.keval("compare", "--exact", "--times", str(recorded.run), str(run))
    return "" if outcome.code == 0 else outcome.stdout + outcome.stderr


def measured(run: Path) -> dict[str, Any]:
    """What each trial took: its calls with their ids and times, tokens, and the digest of its first request."""
    kept = ("tool_calls", "usage", "model_calls", "duration", "turn_durations", "replies", "started", "request")
    trials = lines(run / "trials.jsonl")
    return {trial["id"]: {name: trial["transcript"][name] for name in kept} for trial in trials}


def check_recording(recorded: Recorded) -> None:
    """Check that all that can happen has happened in the recorded run."""
    trials = lines(recorded.run / "trials.jsonl")
    by_kind = {kind: [trial for trial in trials if trial["sample"] == kind] for kind in SAMPLES}
    assert dict.fromkeys(SAMPLES, REPETITIONS) == {kind: len(each) for kind, each in by_kind.items()}
    failed = Counter((trial["sample"], trial["failure"]["kind"]) for trial in trials if trial["failure"])
    assert {("refused", "http_400"): REPETITIONS, ("silent", "timeout"): REPETITIONS} == failed
    assert any(refusal["status"] == 429 for trial in by_kind["busy"] for refusal in trial["transcript"]["refusals"])
    assert any(trial["attempts"] for trial in by_kind["attempts"])
    assert {2} == {len(trial["transcript"]["tool_calls"]) for trial in (*by_kind["parallel"], *by_kind["turns"])}
    calls = [call for trial in by_kind["content"] for call in trial["transcript"]["tool_calls"]]
    kinds = {content["kind"] for call in calls for content in call["content"]}
    assert {"image", "audio", "resource_link", "resource", "structured"} <= kinds
    assert {True} == {
        bool(call["error"]) for trial in by_kind["mistaken"] for call in trial["transcript"]["tool_calls"]
    }
    if recorded.agent == "claude-code":  # the only one that streams
        shown = ("--trial", f"{recorded.agent}/with_desk/parallel/1", "--traffic", "--json")
        traffic = recorded.project.keval("show", str(recorded.run), *shown).data["traffic"]
        types = [each["headers"]["content-type"].partition(";")[0] for each in traffic if each["of"] == "model"]
        assert ["text/event-stream"] * 2 == types
    judged = Counter(score["judge"] for score in lines(recorded.run / "scores.jsonl") if score["judge"])
    assert {"openai": 6 * REPETITIONS, "anthropic": 6 * REPETITIONS} == judged


def check_replay(recorded: Recorded, closed: Closed) -> None:
    """Replay a run and check that the same happened, without network, models and servers."""
    closed.commands.clear()

    outcome, run = replay(recorded, "-j", "16")

    assert 3 == outcome.code, outcome.stderr
    assert "" == different(recorded, run)
    assert measured(recorded.run) == measured(run)
    assert [] == closed.addresses
    own = ["claude"] if recorded.agent == "claude-code" else []
    assert [] == [command for command in closed.commands if not any(name in command for name in own)]
    assert recorded.processes == processes(recorded.project)


@pytest.mark.slow
def test_a_replay_is_the_recorded_run(recorded: Recorded, closed: Closed) -> None:
    write(recorded.project, recorded.agent)

    check_recording(recorded)
    check_replay(recorded, closed)


@pytest.mark.slow
@pytest.mark.parametrize("agent", [agent for agent in AGENTS if agent != "openai"])
def test_a_replay_is_the_recorded_run_by_every_adapter(agent: str, project: Project, closed: Closed) -> None:
    if agent == "claude-code":
        pytest.importorskip("claude_agent_sdk", reason="keval-claude-code is installed apart")
    # Ids that a framework draws, where the model gives its calls none, are no difference.
    recorded = record(agent, project, middleware=["double/nameless"] if agent == "gadk" else [])

    check_recording(recorded)
    check_replay(recorded, closed)


@pytest.mark.parametrize(
    ("change", "named", "diff"),
    [
        ("prompt", "the system prompt differs:", ("-Answer like a bookkeeper.", "+Answer like a pirate.")),
        (
            "description",
            "the description of the tool `add` differs:",
            ("-Add two whole numbers.", "+Adds two numbers."),
        ),
        ("argument", "the server 'desk': the call of `add` differs:", ('-  "b": 31337', '+  "b": 31338')),
    ],
)
def test_what_changed_is_named_by_the_miss(recorded: Recorded, change: str, named: str, diff: tuple[str, str]) -> None:
    described = server(recorded.project, describe={"add": {"description": "Adds two numbers."}})
    changes: dict[str, Any] = {
        "prompt": {
            "conditions": {"with_desk": {"system_prompt": "Answer like a pirate.", "contexts": ["desk", "gallery"]}}
        },
        "description": {"contexts": {"desk": described, "gallery": dict(GALLERY)}},
        "argument": {"middleware": [{"double/misquoting": {"old": "31337", "new": "31338"}}]},
    }
    write(recorded.project, recorded.agent, **changes[change])

    outcome, run = replay(recorded, "--sample-id", "parallel")

    assert 3 == outcome.code, outcome.stderr
    failures = [trial["failure"] for trial in lines(run / "trials.jsonl")]
    assert [("replay", "replay_miss")] * REPETITIONS == [(failure["stage"], failure["kind"]) for failure in failures]
    for failure in failures:
        assert named in failure["message"]
        assert {*diff} <= {*failure["message"].splitlines()}


@pytest.mark.slow
def test_faults_of_every_kind_are_replayed(project: Project) -> None:
    made = Counter[Fault]()
    recorded = record("gadk", project, Disturb(FAULTS), made)

    outcome, run = replay(recorded, "-j", "16")

    assert 3 == outcome.code, outcome.stderr
    assert 8 == len(made)
    assert "" == different(recorded, run)
