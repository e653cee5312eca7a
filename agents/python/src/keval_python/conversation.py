"""A conversation with a function: what it is given, and what becomes of what it returns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import attrs
from cattrs import Converter, transform_error

from keval import Sample, ToolCall, Transcript, Usage
from keval.plugin import Context, TrialError
from keval_python.target import Target

_MEASURED = (
    *("duration", "turn_durations", "started", "replies", "refusals", "request"),
    *("tool_calls", "model_calls", "usage"),
)
"""The fields of a transcript that keval, its tap and its proxy measure where a function does not report them."""


@attrs.define
class FunctionConversation:
    """Calls a function once for each message. `messages` are what was said, in the form that models' APIs take."""

    _target: Target
    _context: Context
    _messages: list[dict[str, str]] = attrs.field(factory=list)
    _answers: list[FunctionAnswer] = attrs.field(factory=list)

    @classmethod
    def begin(cls, target: Target, context: Context) -> FunctionConversation:
        """Begin with the system prompt and what was said earlier. Raises TrialError: it takes no such thing."""
        if target.form == "sample":
            raise TrialError(f"{target.name} takes a Sample, which a session does not have", kind="turns_unsupported")
        if context.servers and (refusal := target.servers_refusal) is not None:
            raise TrialError(refusal, kind="servers_unsupported")
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
            answer = self._report(returned)
        self._messages += [{"role": "user", "content": text}, {"role": "assistant", "content": answer.answer}]

    async def ask_sample(self, sample: Sample) -> Transcript:
        """Call a function that takes a Sample, which has no further turns, and return the transcript."""
        builder = self._context.builder
        builder.leave_calls_to_tap(self._context.servers)
        with builder.turn(sample.question):
            returned = await call(self._target, sample, self._context, context=self._context)
            if isinstance(returned, Transcript):
                builder.said(returned.output, truncated=returned.truncated)
            else:
                self._report(returned)
        if not isinstance(returned, Transcript):
            return self.transcript()
        measured = builder.transcript()
        if len(measured.turn_durations) > 1:
            problem = f"{self._target.name} began a turn of its own within keval's"
            raise TrialError(f"{problem}; annotate it `-> Transcript`, so that keval begins none", kind="bad_answer")
        return completed(returned, measured)

    def transcript(self) -> Transcript:
        """Return the transcript, with what the function told of tool calls, tokens and model calls in its answers."""
        told: dict[str, Any] = {}
        # What one answer does not tell is unknown of the whole trial.
        if all(answer.tool_calls is not None for answer in self._answers):
            told["tool_calls"] = tuple(self._tool_calls())
            told["tool_calls_by"] = "agent"
        if all(answer.usage is not None for answer in self._answers):
            usages = [answer.usage or Usage() for answer in self._answers]
            told["usage"] = sum(usages[1:], usages[0])
        if all(answer.model_calls is not None for answer in self._answers):
            told["model_calls"] = sum(answer.model_calls or 0 for answer in self._answers)
            told["model_calls_by"] = "agent"
        return attrs.evolve(self._context.builder.transcript(), **told)

    def _report(self, returned: object) -> FunctionAnswer:
        answer = read_answer(returned, self._target.name)
        self._answers.append(answer)
        self._context.builder.said(answer.answer, truncated=answer.truncated)
        return answer

    def _tool_calls(self) -> Iterator[ToolCall]:
        tools = self._context.tools
        for turn, answer in enumerate(self._answers):
            for each in answer.tool_calls or ():
                own = each.name not in tools
                yield ToolCall(each.name, each.arguments, each.result, each.error, turn=turn, own=own)


async def call(target: Target, *args: object, context: Context) -> Any:
    """Call a function for a trial, and return what it returns. Raises TrialError."""
    return await target.call(*args, streamed=context.builder.streamed if context.streams else _ignored)


def completed(told: Transcript, measured: Transcript) -> Transcript:
    """Return the transcript of a function with what keval measured, where the function does not say it."""
    fields = attrs.fields_dict(Transcript)
    unsaid = [name for name in _MEASURED if getattr(told, name) == fields[name].default]
    unsaid += [f"{name}_by" for name in ("tool_calls", "model_calls") if name in unsaid]
    return attrs.evolve(told, **{name: getattr(measured, name) for name in unsaid})


def turns_unsupported(target: Target) -> TrialError:
    """Return the error for a sample with several turns that the function cannot be asked."""
    problem = f"{target.name} answers one question, and the sample has more turns"
    remedy = "let it take `question` and `history`, or take a Sample and a Context and be annotated `-> Transcript`"
    return TrialError(f"{problem}; {remedy}", kind="turns_unsupported")


def _ignored(text: str) -> None:
    """Nobody reads along."""


@attrs.frozen
class Call:
    """A call of a tool, as a function tells it."""

    name: str
    arguments: Mapping[str, Any] = attrs.field(factory=dict)
    result: str | None = None
    error: str | None = None


@attrs.frozen
class FunctionAnswer:
    """A function's answer, and what else it tells; what it does not tell is `None`."""

    answer: str
    tool_calls: tuple[Call, ...] | None = None
    usage: Usage | None = None
    model_calls: int | None = None
    truncated: bool = False


def read_answer(returned: object, name: str) -> FunctionAnswer:
    """Read what the function of this name returned. Raises TrialError: kind `bad_answer`."""
    if isinstance(returned, str):
        return FunctionAnswer(returned)
    if not isinstance(returned, Mapping):
        problem = f"{name} returned {returned!r:.60}; return a text, a mapping with `answer`, or a Transcript"
        raise TrialError(problem, kind="bad_answer")
    try:
        return _converter.structure(returned, FunctionAnswer)
    except Exception as error:
        told = "; ".join(transform_error(error, path="the mapping"))
        raise TrialError(f"{name} returned a mapping that keval cannot read: {told}", kind="bad_answer") from error


# cattrs would make a text of 5, and True of "no".
def _exactly(kind: type) -> Any:
    def read(value: Any, _: Any) -> Any:
        if type(value) is not kind:
            raise TypeError(f"expected {kind.__name__}, got {value!r:.60}")
        return value

    return read


_converter = Converter(forbid_extra_keys=True)
for _kind in (str, int, bool):
    _converter.register_structure_hook(_kind, _exactly(_kind))
