"""Canaries: a secret in every place where a variable can stand, and none in what keval leaves or prints.

A tool and a model tell all of them, in every form; so do a server that dies, an agent that fails, and a model that
refuses the key.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest

from keval_gateway import ChatCall, ChatReply, ChatRequest, ModelFault
from keval_replay.frames import FrameKey, Frames, traffic_file
from tests.canaries import forms, leaks
from tests.conftest import Project
from tests.end_to_end.servers.model import gateway
from tests.printed import printed
from tests.stdio_server import ENVIRONMENT

PLACES = (
    "ENV",
    "ARGUMENT",
    "HEADER",
    "ADDRESS",
    "USER",
    "PROMPT",
    "RUBRIC",
    "NOTE",
    "FACT",
    "HOOK",
    "TRAIT",
    "PASSAGE",
)
CANARIES = {f"CANARY_{place}": f'c4n4ry/{place}+ö"=?' for place in PLACES}
CANARIES["CANARY_ENV"] += "\nsecond line\\n"
# A key and a header go through HTTP.
CANARIES["OPENAI_API_KEY"], CANARIES["CANARY_HEADER"] = "sk-c4n4ry/key+~=", "c4n4ry/header+~="
TOLD = "".join(f"{form}\n" for secret in CANARIES.values() for form in forms(secret).values())
GIVEN = ["eval.yaml", "questions.jsonl", "told.txt", "server.py"]

SERVER = """
import os, sys
from pathlib import Path

from tests.printed import printed
from tests.stdio_server import Tool, serve, text


def leak(arguments, meta):
    return text(f"{dict(os.environ)} {sys.argv} " + Path("told.txt").read_text(encoding="utf-8"))


if "dies" in sys.argv:
    sys.stderr.write(f"{os.environ['DSN']} {os.environ['DSN']!r} {sys.argv}")
    sys.exit(3)
serve("leaky", lambda: {"leak": Tool(leak)})
"""


def config(**changes: Any) -> Mapping[str, Any]:
    env = {**ENVIRONMENT, "DSN": "${CANARY_ENV}"}
    server = {"type": "stdio", "command": sys.executable, "args": ["server.py", "${CANARY_ARGUMENT}"], "env": env}
    address = "http://${CANARY_USER}:${CANARY_ADDRESS}@127.0.0.1:9/"
    return {
        "dataset": {"path": "questions.jsonl"},
        "agents": {
            "asked": {"type": "openai", "model": "openai/gpt-test"},
            "scripted": {"characteristics": {"note": "it is ${CANARY_TRAIT}"}},
        },
        "contexts": {
            "leaky": {**server, "cwd": "."},
            "unused": {"type": "http", "url": address, "headers": {"X-Key": "Bearer ${CANARY_HEADER}"}},
            "notes": {"text": "Notes: ${CANARY_PASSAGE}"},
        },
        "conditions": {
            "it": {"system_prompt": "Never say ${CANARY_PROMPT}.", "contexts": ["leaky", "notes"]},
            "bare": {"system_prompt": "Say ${CANARY_PROMPT}."},
        },
        "metrics": ["double/length", "basic/latency"],
        "judges": {"strict": {"odd": "as ${CANARY_RUBRIC} says"}},
        "rubrics": [{"tone": {"instructions": "Is it ${CANARY_RUBRIC}?", "levels": {"1": "no", "2": "yes"}}}],
        "plugins": [
            {"double/facts": {"truth": "it is ${CANARY_FACT}"}},
            {"double/clumsy": {"says": "nobody hears ${CANARY_HOOK}", "warns": True}},
        ],
        "execution": {
            "executor": {"type": "double/backwards", "note": "says ${CANARY_NOTE}"},
            "retry": {"max_attempts": 2, "initial_backoff_seconds": 0},
        },
        **changes,
    }


def written(project: Project, **changes: Any) -> None:
    questions = [
        {"id": "says", "question": "How?", "answer": "So.", "says": TOLD},
        {"id": "fails", "question": "How?", "fail": "bug", "bug": f"it broke: {TOLD}"},
        {"id": "attaches", "question": "How?", "attaches": TOLD},
    ]
    project.write(
        eval_yaml=json.dumps(config(**changes)),
        questions_jsonl="".join(json.dumps(question) + "\n" for question in questions),
        told_txt=TOLD,
        server_py=SERVER,
    )


def tells(request: ChatRequest) -> ChatReply:
    if request.messages[-1].role != "tool" and request.tools:
        return ChatReply(calls=(ChatCall(request.tools[0].name),))
    return ChatReply(f"{request.headers.get('authorization')} {request.system} {TOLD}")


def refuses(request: ChatRequest) -> ChatReply:
    raise ModelFault(400, f"Incorrect input provided: {request.headers['authorization']}, {request.system}")


def denies(request: ChatRequest) -> ChatReply:
    raise ModelFault(401, f"Incorrect API key provided: {request.headers['authorization']}, {request.system}")


def told(environ: Mapping[str, str], *args: str) -> tuple[int, str]:
    return printed(*args, env={**environ, **CANARIES})


AFTER = [
    ("report", "latest"),
    ("report", "latest", "--json"),
    ("list",),
    ("list", "--json"),
    ("show", "latest"),
    ("show", "latest", "--json"),
    ("show", "latest", "--trial", "asked/it/says/1"),
    ("show", "latest", "--trial", "asked/it/says/1", "--json"),
    ("show", "latest", "--trial", "scripted/it/fails/1"),
    *(("export", "latest", "--format", name) for name in ("eee", "csv", "junit", "otlp", "parquet")),
    ("score", "latest"),
    ("score", "latest", "--json"),
]


@pytest.mark.slow
@pytest.mark.parametrize("respond", [tells, refuses], ids=["passing", "failing"])
def test_no_canary_is_left_or_printed(project: Project, respond: Any) -> None:
    written(project)

    with gateway(respond) as environ:
        before = [told(environ, *args) for args in (["validate", "eval.yaml"], ["run", "eval.yaml", "--dry-run"])]
        before.append(told(environ, "run", "eval.yaml", "--dry-run", "--json"))
        code, said = told(environ, "run", "eval.yaml", "--record")
        after = [told(environ, *args) for args in AFTER]

    assert ([0, 0, 0], 3) == ([done for done, _ in before], code), said
    assert {0, 3} == {done for done, _ in after}
    assert [] == leaks(CANARIES, [said, *(text for _, text in [*before, *after])], project.root, GIVEN)
    frames = Frames(traffic_file(project.run_directory()))
    lines = frames.read(FrameKey("agent", trial="asked/it/says/1"), orjson.loads)
    asked, *_ = (line for line in lines if line["of"] == "model")
    assert "Never say [secret]." in asked["request"]["body"]
    trials = {line["id"]: line for line in project.lines("trials.jsonl")}
    failed = trials["scripted/it/fails/1"]["failure"]
    assert ("ZeroDivisionError", True) == (failed["kind"], "[secret]" in failed["traceback"])
    if respond is tells:
        (kept,) = (line["result"] for line in lines if line["of"] == "server" and line["kind"] == "call")
        assert str(kept).count("[secret]") >= len(CANARIES) * 10
        (call,) = trials["asked/it/says/1"]["transcript"]["tool_calls"]
        assert call["result"].count("[secret]") >= len(CANARIES) * 10
        assert "'DSN': '[secret]'" in call["result"]
        assert trials["asked/bare/says/1"]["output"].startswith("Bearer [secret] Say [secret]. ")
    else:
        assert "input provided: Bearer [secret]" in trials["asked/it/says/1"]["failure"]["message"]
    assert "warning: the hook plugin" in said
    assert "nobody hears [secret]" in said
    assert "it is [secret]" == project.lines("samples.jsonl")[0]["facts"]["truth"]


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_no_canary_is_in_what_a_vendor_says_that_ends_a_run(project: Project, log_format: str) -> None:
    written(project)

    with gateway(denies) as environ:
        code, said = told(environ, "run", "eval.yaml", "--log-format", log_format)

    assert 3 == code
    assert "HTTP 401: Incorrect API key provided: Bearer [secret]" in said
    assert [] == leaks(CANARIES, [said], project.root, GIVEN)


WRONG: dict[str, dict[str, Any]] = {
    "a number": {"execution": {"max_concurrent": "${CANARY_ENV}"}},
    "a choice": {"neutral": "${CANARY_PROMPT}"},
    "an option": {"metrics": [{"double/length": {"limit": "${CANARY_NOTE}"}}]},
    "a plugin": {"metrics": ["${CANARY_NOTE}"]},
    "a model": {"agents": {"gadk": {"model": "${CANARY_HOOK}"}}},
    "an address": {"contexts": {"leaky": {"type": "http", "url": "${CANARY_ENV}"}, "notes": {}}},
    "a path": {"dataset": {"path": "${CANARY_ENV}.jsonl"}},
    "a template": {"conditions": {"it": {"system_prompt": "{{ ${CANARY_PROMPT} }}"}}},
    "a server": {"contexts": {"leaky": {"type": "stdio", "command": sys.executable, "cwd": ".", "env": {
        "DSN": "${CANARY_ENV}", **ENVIRONMENT}, "args": ["server.py", "dies", "${CANARY_ARGUMENT}"]}, "notes": {}}},
    "a command": {"contexts": {"leaky": {"type": "stdio", "command": "x${CANARY_ENV}", "env": {
        "DSN": "${CANARY_ENV}"}}, "notes": {}}},
    "a judge": {"judges": {"strict": {"refuses": "no ${CANARY_RUBRIC} today"}}},
}  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG)
def test_no_canary_is_told_in_an_error(project: Project, wrong: str) -> None:
    # What is wrong is secret because it stands in a place that says so, too.
    known = {"known": {"type": "notes", "headers": {name: f"${{{name}}}" for name in CANARIES}}}
    changes = WRONG[wrong]
    written(project, **{**changes, "contexts": {**config()["contexts"], **changes.get("contexts", {}), **known}})

    code, said = told({}, "run", "eval.yaml")

    assert (2, True) == (code, said.startswith(("error: ", "note: ")) or "\nerror: " in said), said
    assert [] == leaks(CANARIES, [said], project.root, GIVEN)


def test_a_defect_tells_no_canary(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    written(project)

    def broken(root: Path, *args: object) -> None:
        raise RuntimeError(TOLD)

    monkeypatch.setattr("keval.store.writer.RunWriter.create", broken)
    with gateway(tells) as environ:
        code, said = told(environ, "run", "eval.yaml")

    assert (70, True) == (code, "Traceback" in said and "RuntimeError" in said)
    assert [] == leaks(CANARIES, [said], project.root, GIVEN)
