"""The simulated coding model: does the steps of a script that what it was told makes it do."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random
from urllib.parse import unquote

import attrs

from keval.plugin import ConfigError
from keval_gateway import ChatMessage, ChatReply, ChatRequest, ModelFault
from keval_simulator.coder.middleware import SCRIPT_HEADER
from keval_simulator.coder.script import Script, script_at
from keval_simulator.coder.skills import offered_skills, skill_call
from keval_simulator.coder.tools import calls_of
from keval_simulator.conversation import without_blocks


def coder(seed: int) -> CoderModel:
    """Return the simulated coding model, whose script each request names; see `CoderScript`."""
    return CoderModel(seed)


@attrs.frozen
class CoderModel:
    """Does a task of its script by the tools that it is offered, one call a request, and then answers.

    First it reads the skills whose description fits the task. What it does is a function of its seed, the repetition,
    the script, and the texts that it was told.
    """

    seed: int = 0

    def __call__(self, request: ChatRequest) -> ChatReply:
        """Answer one request. Raises ModelFault: it names no script, or one that cannot be read."""
        script = _script(request)
        asked = _asked(request.messages)
        question = without_blocks(request.messages[asked].text) if request.messages else ""
        task = next((each for each in script.tasks if each.fits(question)), None)
        if task is None:
            return ChatReply("The script of this simulated model has no such task.")
        told = "\n".join((request.system, *(each.text for each in request.messages if each.role != "assistant")))
        due = [
            step for number, step in enumerate(task.steps) if step.is_due(told, self._draw(request, question, number))
        ]
        skills = [skill_call(request.tools, each) for each in offered_skills(told) if task.reads(each.description)]
        made = [call for message in request.messages[asked:] for call in message.calls]
        for call in (*filter(None, skills), *(call for step in due for call in calls_of(step, request.tools))):
            if not any(each.name == call.name and call.arguments.items() <= each.arguments.items() for each in made):
                return ChatReply(calls=(call,))
        return ChatReply(next((step.say for step in reversed(due) if step.say is not None), "Done."))

    def _draw(self, request: ChatRequest, question: str, number: int) -> float:
        """Return a number between 0 and 1 for a step: the same in every condition, and in every request of a trial."""
        return Random(f"{self.seed}/{request.repetition}/{request.resample}/{question}/{number}").random()


def _script(request: ChatRequest) -> Script:
    path = Path(unquote(request.headers.get(SCRIPT_HEADER, "")))
    try:
        return script_at(path, path.stat().st_mtime_ns)
    except (ConfigError, OSError) as error:
        told = f"{error}; name one in the config: `middleware: [simulated/coder: {{path: script.yaml}}]`"
        raise ModelFault(400, f"the simulated coding model has no script: {told}") from error


def _asked(messages: Sequence[ChatMessage]) -> int:
    """Return the index of the user's last message, or 0.

    A message of the user right after a tool's result is an agent's own, as Claude Code hands over a skill.
    """
    asked, before = 0, ""
    for index, message in enumerate(messages):
        if message.role == "user" and before != "tool":
            asked = index
        elif message.role != "user":
            before = message.role
    return asked
