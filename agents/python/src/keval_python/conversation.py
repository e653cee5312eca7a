"""A conversation with a function: what it is given, and what becomes of what it returns."""

from __future__ import annotations

from typing import Any

import attrs

from keval import Transcript, Usage
from keval.plugin import Context, ModelError, TrialError, retry_after_seconds
from keval_python.answer import Answer, read_answer
from keval_python.target import Target, causes

_MEASURED = ("duration", "turn_durations", "started", "model_calls", "usage", "replies", "refusals", "request")
"""The fields of a transcript that keval measures where a function does not report them."""


@attrs.define
class FunctionConversation:
    """Calls a function once for each message. `messages` are what was said, in the form that models' APIs take."""

    _target: Target
    _context: Context
    _messages: list[dict[str, str]] = attrs.field(factory=list)
    _answers: list[Answer] = attrs.field(factory=list)

    @classmethod
    def begin(cls, target: Target, context: Context) -> FunctionConversation:
        """Begin with the system prompt and what was said earlier. Raises TrialError: it takes no such thing."""
        takes = f"{target.name} takes no Context; let it take a Sample and a Context"
        if target.form == "sample":
            raise TrialError(f"{target.name} takes a Sample, which a session does not have", kind="turns_unsupported")
        if context.servers:
            raise TrialError(f"{takes}, whose `servers` are the condition's", kind="servers_unsupported")
        if context.history and target.form == "question":
            problem = f"{target.name} takes the question alone, and the sample has a history; let it take `history` too"
            raise TrialError(problem, kind="history_unsupported")
        system = [{"role": "system", "content": context.instructions}] if context.instructions else []
        earlier = [{"role": message.role, "content": message.text} for message in context.history]
        return cls(target, context, [*system, *earlier])

    async def ask(self, text: str) -> None:
        """Call the function with a message; see `keval.plugin.Conversation`."""
        if self._answers and self._target.form == "question":
            raise turns_unsupported(self._target)
        with self._context.builder.turn(text):
            if self._target.form == "history":
                returned = await call(self._target, text, [*self._messages], context=self._context)
            else:  # a system prompt has no other place
                question = "\n\n".join([*(message["content"] for message in self._messages), text])
                returned = await call(self._target, question, context=self._context)
            answer = self.report(returned)
        self._messages += [{"role": "user", "content": text}, {"role": "assistant", "content": answer}]

    def report(self, returned: object) -> str:
        """Report what the function returned, and return its answer. Raises TrialError: it is none."""
        answer, builder = read_answer(returned, self._target.name), self._context.builder
        self._answers.append(answer)
        if answer.tool_calls is None:
            builder.leave_calls_to_tap()
        for number, each in enumerate(answer.tool_calls or ()):
            builder.called(each.name, each.arguments, str(number), own=each.name not in self._context.tools)
            builder.returned(each.result, error=each.error, id=str(number))
        builder.said(answer.answer, truncated=answer.truncated)
        return answer.answer

    def transcript(self) -> Transcript:
        """Return the transcript, with the tokens and model calls that the function told in each of its answers."""
        told: dict[str, Any] = {}
        usages = [answer.usage for answer in self._answers if answer.usage is not None]
        calls = [answer.model_calls for answer in self._answers if answer.model_calls is not None]
        if len(usages) == len(self._answers):
            told["usage"] = sum(usages[1:], usages[0])
        if len(calls) == len(self._answers):
            told["model_calls"] = sum(calls)
        return attrs.evolve(self._context.builder.transcript(), **told)


async def call(target: Target, *args: object, context: Context) -> Any:
    """Call a function for a trial, and return what it returns.

    Raises:
        ModelError: what it raised has the status of a refused model request, as the errors of vendors' SDKs have.
        TrialError: kind `target_failed`, what else it raised.
    """
    streamed = context.builder.streamed if context.streams else _ignored
    try:
        return await target.call(*args, streamed=streamed)
    except TrialError as error:
        for cause in causes(error.__cause__) if context.model is not None else ():
            if isinstance(status := getattr(cause, "status_code", None), int):
                headers = getattr(getattr(cause, "response", None), "headers", {})
                wait = retry_after_seconds(headers.get("retry-after"))
                raise ModelError(str(error), status=status, retry_after=wait) from error
        raise


def completed(told: Transcript, measured: Transcript) -> Transcript:
    """Return the transcript of a function with what keval measured, where the function does not say it.

    If it has no tool calls, they are those that the tap recorded.
    """
    fields = attrs.fields_dict(Transcript)
    missing = [name for name in _MEASURED if getattr(told, name) in (fields[name].default, Usage())]
    found = {name: getattr(measured, name) for name in missing}
    return attrs.evolve(told, **found)


def turns_unsupported(target: Target) -> TrialError:
    """Return the error for a sample with several turns that the function cannot be asked."""
    remedy = "let it take `question` and `history`, or take a Sample and a Context and be annotated `-> Transcript`"
    return TrialError(
        f"{target.name} answers one question, and the sample has more turns; {remedy}", kind="turns_unsupported"
    )


def _ignored(text: str) -> None:
    """Nobody reads along."""
