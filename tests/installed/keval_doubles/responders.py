"""Responders for tests: one that answers by a script, and some that cannot be made.

A script is a list of steps. The n-th request is answered by the n-th step, and every request after the last step by the
last one. Requests are counted per trial and user's message, so that the retry of a trial goes on with the next step.
A step has one of these keys, or `text` and `calls` together:

    text: It is mild.                                   an answer, be it one that breaks what was asked for
    calls: [{name: weather, arguments: {city: Oslo}}]   tool calls
    fault: {status: 429, message: Too many requests., retry_after: 1}     an HTTP error
    blocks: 60                                          nothing at all, for so many seconds
    kills: died                                         the end of its process, unless it has made that file
    returns: 42                                         something that is no reply, which a gateway answers with a 500

In a text, `{model}` is the model that was asked for, `{seed}` the run's seed and `{result}` the last tool's result.

The script is the user's last message, if that is YAML with the one key `script`. Otherwise it is in the YAML file that
the environment variable KEVAL_DOUBLES_SCRIPT names: a list, or a mapping from a model's name to a list.

Where KEVAL_DOUBLES_JOURNAL names a file, a line of JSON is added to it for every request.
"""

import json
import os
import signal
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import yaml

from keval_gateway import ChatCall, ChatReply, ChatRequest, ModelFault, Respond

VARIABLE = "KEVAL_DOUBLES_SCRIPT"
JOURNAL = "KEVAL_DOUBLES_JOURNAL"


@attrs.define
class Scripted:
    """Answers by `steps`, or else by the script of the request or the environment; keeps the requests."""

    steps: Sequence[Mapping[str, Any]] = ()
    seed: int = 0
    seen: list[ChatRequest] = attrs.field(factory=list, init=False)
    _counts: Counter[tuple[str, int, str, str]] = attrs.field(factory=Counter, init=False)

    def __call__(self, request: ChatRequest) -> ChatReply:
        self.seen.append(request)
        if journal := os.environ.get(JOURNAL):
            _note(Path(journal), request)
        asked = next((message.text for message in reversed(request.messages) if message.role == "user"), "")
        key = (request.trial, request.repetition, request.model, asked)
        self._counts[key] += 1
        steps = self.steps or _script(asked, request.model)
        return self._reply(steps[min(self._counts[key], len(steps)) - 1], request)

    def _reply(self, step: Mapping[str, Any], request: ChatRequest) -> ChatReply:
        if "fault" in step:
            raise ModelFault(**{"message": "as the script says", **step["fault"]})
        if "blocks" in step:
            time.sleep(step["blocks"])
        if "kills" in step and not (step["kills"] and Path(step["kills"]).exists()):
            if step["kills"]:
                Path(step["kills"]).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        if "returns" in step:
            reply: ChatReply = step["returns"]
            return reply
        result = next((message.text for message in reversed(request.messages) if message.role == "tool"), "")
        text = str(step.get("text", ""))
        for name, value in {"model": request.model, "seed": self.seed, "result": result}.items():
            text = text.replace(f"{{{name}}}", str(value))
        return ChatReply(text, tuple(ChatCall(**call) for call in step.get("calls", ())))


def scripted(seed: int) -> Respond:
    return Scripted(seed=seed)


def broken(seed: int) -> Respond:
    raise ZeroDivisionError("division by zero")


def no_function(seed: int) -> int:
    return seed


def _note(journal: Path, request: ChatRequest) -> None:
    with journal.open("a", encoding="utf-8") as file:
        entry = {"wire": request.wire, "trial": request.trial, "stream": request.stream}
        file.write(json.dumps({**entry, "headers": dict(request.headers)}) + "\n")


def _script(asked: str, model: str) -> Sequence[Mapping[str, Any]]:
    if asked.lstrip().startswith(("{", "script:")):
        steps: Sequence[Mapping[str, Any]] = yaml.safe_load(asked)["script"]
        return steps
    written = yaml.safe_load(Path(os.environ[VARIABLE]).read_text(encoding="utf-8"))
    steps = written[model] if isinstance(written, dict) else written
    return list(steps)
