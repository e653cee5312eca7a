"""The simulated model: rules in place of a language model, with the same answers for the same seed."""

from __future__ import annotations

import hashlib
from random import Random
from typing import Any

import attrs
import orjson

from keval_gateway import ChatCall, ChatReply, ChatRequest, ChatTool, ModelFault
from keval_simulator.alterations import alterations
from keval_simulator.answers import Flaws, composed
from keval_simulator.arguments import fill
from keval_simulator.conversation import Conversation, stated_in, understand
from keval_simulator.judge import Sections, claims, judge, preference, sections_of, suggestions
from keval_simulator.questions import Brief, written
from keval_simulator.replies import acknowledge, apology, clarification, guess, remembered, small_talk, unknown
from keval_simulator.schema import Schema, conform, schema_type
from keval_simulator.tools import changes, plan
from keval_simulator.words import stems

_PLANNING = ("plan", "from its head")


@attrs.frozen
class SimulatedModel:
    """Answers chat requests by rules: it follows the tools it is offered, and has no knowledge of its own.

    An answer is a pure function of the model's seed and the request's content, `repetition`, `resample` and `seed`;
    ids, headers and the trial do not matter. The probabilities say how it errs, so that repetitions differ as a
    language model's would.
    """

    seed: int = 0
    flaws: Flaws = attrs.field(factory=Flaws)
    guesses: float = 0.4
    """How often it makes an answer up when it has no tool to look it up with."""
    careless: float = 0.1
    """How often it does not look up what is kept of the user before it advises."""
    ignores_tools: float = 0.0
    """How often it answers a question from its head though it has tools."""

    def __call__(self, request: ChatRequest) -> ChatReply:
        """Answer one request.

        Raises:
            ModelFault: the request forces a tool that it does not offer, or wants a schema that cannot be filled.
        """
        conversation = understand(request)
        if request.forced_tool is not None:
            return ChatReply(calls=(self._forced(request, conversation),))
        if self._from_its_head(request):
            unaided = attrs.evolve(self, guesses=1.0, ignores_tools=0.0)
            return unaided(attrs.evolve(request, tools=()))
        if request.tools and request.tool_choice != "none":
            reply = self._called(request, conversation)
            if reply is not None:
                return reply
        if request.response_schema is not None:
            value = self._structured(request, request.response_schema, conversation)
            return ChatReply(orjson.dumps(value).decode())
        return ChatReply(self._prose(request, conversation))

    def _rng(self, request: ChatRequest, purpose: str) -> Random:
        """Return the randomness of one decision.

        What is decided before a tool is called must not change when its result is in the conversation, so a plan
        depends on the messages up to the user's last only.
        """
        if purpose in _PLANNING:
            last = max((i for i, message in enumerate(request.messages) if message.role == "user"), default=-1)
            request = attrs.evolve(request, messages=request.messages[: last + 1])
        return Random(hashlib.sha256(self._salt(request, purpose) + request.canonical()).digest())

    def _wobble(self, request: ChatRequest) -> Random:
        """Return a judge's randomness: what it judges does not matter, so that a better answer is never rated lower."""
        return Random(hashlib.sha256(self._salt(request, "judge")).digest())

    def _salt(self, request: ChatRequest, purpose: str) -> bytes:
        # "roll" is what `resample` was once called; another word here would change the answers.
        again = f"roll {request.resample}\0" if request.resample else ""
        return f"{self.seed}\0{request.repetition}\0{request.seed}\0{again}{purpose}\0".encode()

    def _from_its_head(self, request: ChatRequest) -> bool:
        free = bool(request.tools) and request.tool_choice == "auto" and request.forced_tool is None
        return free and self._rng(request, "from its head").random() < self.ignores_tools

    def _called(self, request: ChatRequest, conversation: Conversation) -> ChatReply | None:
        careful = self._rng(request, "plan").random() >= self.careless
        step = plan(request.tools, conversation, careful=careful)
        if step.calls:
            return ChatReply(calls=step.calls)
        if request.tool_choice == "required" and not conversation.outcomes:
            return ChatReply(calls=(self._arguments(request, request.tools[0], conversation),))
        return ChatReply(clarification(step.missing, self._rng(request, "answer"))) if step.missing else None

    def _forced(self, request: ChatRequest, conversation: Conversation) -> ChatCall:
        tool = next((tool for tool in request.tools if tool.name == request.forced_tool), None)
        if tool is None:
            raise ModelFault(400, f"tool_choice: no tool {request.forced_tool!r} is offered")
        return self._arguments(request, tool, conversation)

    def _arguments(self, request: ChatRequest, tool: ChatTool, conversation: Conversation) -> ChatCall:
        """Return a call that must be made: filled from the conversation, or else with whatever its schema allows."""
        filled = fill(tool, conversation)
        writes = bool(Brief.of(request, tool.parameters) or alterations(request, tool.parameters))
        if writes or _prompt_sections(request, conversation).judging or filled.missing:
            return ChatCall(tool.name, self._structured(request, tool.parameters, conversation))
        return ChatCall(tool.name, dict(filled.arguments))

    def _structured(self, request: ChatRequest, schema: Schema, conversation: Conversation) -> Any:
        """Return a value for a schema: a verdict when there is something to judge, else the answer in prose."""
        rng = self._rng(request, "structure")
        if (brief := Brief.of(request, schema)) is not None:
            return written(brief, rng)
        if (altered := alterations(request, schema)) is not None:
            return altered
        sections = _prompt_sections(request, conversation)
        if sections.second is not None:
            return conform(schema, preference(sections), rng)
        if sections.judging:
            if (found := claims(sections, schema)) is not None:
                return found
            return conform(schema, suggestions(judge(sections, self._wobble(request))), rng)
        prose = self._prose(request, conversation)
        if schema_type(schema) == "object" and not schema.get("properties") and not schema.get("$ref"):
            return {"answer": prose} if schema.get("additionalProperties") is not False else {}
        return conform(schema, lambda path, inner: prose if schema_type(inner) == "string" else None, rng)

    def _prose(self, request: ChatRequest, conversation: Conversation) -> str:
        rng = self._rng(request, "answer")
        question = conversation.question
        good = [outcome for outcome in conversation.outcomes if outcome.useful]
        states = bool(stated_in(question))
        parts: list[str] = []
        if states:
            noted = any(outcome.call.name == tool.name and changes(tool) for outcome in good for tool in request.tools)
            parts.append(acknowledge(conversation, noted, rng))
        elif conversation.statements:
            parts.append(remembered(conversation))
        if good and not (states and "?" not in question):
            parts.insert(0, composed(conversation, rng, self.flaws))
        if failed := [outcome for outcome in conversation.outcomes if not outcome.useful and not good]:
            parts.append(apology(failed))
        if good or failed or states:
            return " ".join(parts)
        if not stems(question) or "?" not in question:
            return small_talk(question, rng)
        return guess(conversation, rng) if rng.random() < self.guesses else unknown()


def _prompt_sections(request: ChatRequest, conversation: Conversation) -> Sections:
    """Look for something to judge in the user's message, in the whole prompt, and in what the user said before.

    A judge whose reply was refused is asked once more, in a message that has nothing to judge.
    """
    prompts = (conversation.question, f"{request.system}\n{conversation.question}", *reversed(conversation.earlier))
    return next((found for text in prompts if (found := sections_of(text)).judging), Sections())
