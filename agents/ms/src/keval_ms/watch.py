"""Watches one trial in the framework's middleware: reports what happens, and stops what must not be scored."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import agent_framework as framework
import attrs

from keval import Usage
from keval.plugin import ContentKind, Context, ServerLostError, ToolsMissingError, TrialError
from keval_mcp import MOST_NESTED, is_too_deep
from keval_ms.faults import bad_reply, broken_off, described, end_of_stream, is_truncated, model_fault, reply_fault
from keval_ms.tools import Session, dropped_kinds, passed_on

Proceed: TypeAlias = Callable[[], Awaitable[None]]
_Stream: TypeAlias = framework.ResponseStream[framework.ChatResponseUpdate, framework.ChatResponse[Any]]


@attrs.define
class Watch:
    """The middleware of one trial: `model_call` stands around every request to the model, `tool_call` around tools.

    What `model_call` raises ends the framework's run. Around a tool the framework turns an error into something the
    model is told, and only a MiddlewareFailure ends the run; its cause is the error to report.
    """

    context: Context
    max_turns: int
    sessions: Sequence[Session]
    _owners: Mapping[str, Session] = attrs.field(init=False)
    _names: Mapping[str, str] = attrs.field(init=False)
    _schemas: Mapping[str, Mapping[str, Any]] = attrs.field(init=False)
    _made: int = attrs.field(init=False, default=0)
    _said: str = attrs.field(init=False, default="")
    _open: list[str] = attrs.field(init=False, factory=list)

    def __attrs_post_init__(self) -> None:
        self._owners = {name: session for session in self.sessions for name in session.names}
        self._names = {name: theirs for session in self.sessions for name, theirs in session.names.items()}
        functions = [function for session in self.sessions for function in session.tool.functions]
        self._schemas = {function.name: function.parameters() for function in functions}

    def end_turn(self, response: framework.AgentResponse[Any]) -> None:
        """Report what the framework answered or gave up without asking the model again, and count calls afresh."""
        self._made = 0
        self._settle(response.messages)
        for left in list(self._open):
            self._returned(left, error="the framework did not run this call", sent=False)
        answer = response.messages[-1].text if response.messages else ""
        if answer != self._said:
            self.context.builder.said(answer)

    async def model_call(self, context: framework.ChatContext, proceed: Proceed) -> None:
        """Let a request pass if it offers the model the right tools, and report what comes back.

        Raises:
            ToolsMissingError: it would offer other tools than the condition does.
            TrialError: the user's message has had all the model calls it may have.
            ModelError: the model's endpoint refused, failed or timed out.
        """
        self._settle(context.messages)
        self._check(tool.name for tool in (context.options or {}).get("tools") or ())
        if self._made == self.max_turns:
            raise TrialError(
                f"{self.max_turns} model calls brought no answer; raise max_turns if that is too few", kind="max_turns"
            )
        self._made += 1
        try:
            await proceed()
        except Exception as error:
            raise model_fault(error) from error
        if isinstance(context.result, framework.ChatResponse):
            self._report(context.result, context.result.raw_representation)
        elif context.result is not None:
            context.result = self._watched(context.result)

    async def tool_call(self, context: framework.FunctionInvocationContext, proceed: Proceed) -> None:
        """Run a tool and report what came of it; end the trial if its server was lost.

        Raises:
            MiddlewareFailure: because of a ServerLostError.
        """
        session, call = self._owners[context.function.name], context.metadata["call_id"]
        # The framework would send its own objects to a server for arguments of these names that the model left out.
        context.kwargs = {}
        try:
            await proceed()
        except Exception as error:
            # The framework's check of the arguments raises a TypeError before anything is sent.
            self._returned(call, error=described(error), sent=not isinstance(error, TypeError))
            _end_if(session.loss(error))
            raise
        self._returned(call, result=_text(context.result), dropped=dropped_kinds(context.result))
        # A call may succeed although another one of the same reply lost the server.
        _end_if(session.loss())

    def _check(self, offered: Iterable[str]) -> None:
        found, expected = {self._names.get(name, name) for name in offered}, set(self.context.tools)
        self.context.builder.offered(found)
        if found != expected:
            raise ToolsMissingError(expected - found, found - expected)

    def _watched(self, stream: _Stream) -> _Stream:
        """Return a reply's stream that is reported as it comes, and the reply at its end, before any tool is run."""
        whole: list[framework.ChatResponse[Any]] = []

        async def updates() -> AsyncIterator[framework.ChatResponseUpdate]:
            end: object = None
            try:
                async for update in stream:
                    self.context.builder.streamed(_piece(update))
                    end = end_of_stream(update) or end
                    yield update
                whole.append(await stream.get_final_response())
            except Exception as error:
                raise model_fault(error) from error
            if end is None:
                raise broken_off()
            self._report(whole[0], end)

        return framework.ResponseStream(updates(), finalizer=lambda updates: whole[0])

    def _report(self, response: framework.ChatResponse[Any], reply: object) -> None:
        self.context.builder.model_called(_usage(response.usage_details))
        if failed := reply_fault(response, reply):
            raise failed
        for message in response.messages:
            self._said = message.text
            thoughts = (content.text or "" for content in message.contents if content.type == "text_reasoning")
            cut = is_truncated(response)
            self.context.builder.said(message.text, truncated=cut, reasoning="\n\n".join(filter(None, thoughts)))
            for content in message.contents:
                if content.type == "function_call":
                    self._called(content)

    def _called(self, content: framework.Content) -> None:
        name, call = content.name or "", content.call_id or ""
        try:
            given = content.parse_arguments() or {}
        except RecursionError as error:
            raise bad_reply(f"the arguments of {name!r} are nested too deeply") from error
        if is_too_deep(given):  # also where nobody would be passed them, as the framework compares them
            raise bad_reply(f"the arguments of {name!r} are nested more than {MOST_NESTED} deep")
        arguments = passed_on(given, self._schemas.get(name, {}))
        self.context.builder.called(self._names.get(name, name), arguments, call)
        self._open.append(call)

    def _returned(
        self,
        call: str,
        *,
        result: str | None = None,
        error: str | None = None,
        sent: bool = True,
        dropped: Iterable[ContentKind] = (),
    ) -> None:
        self._open.remove(call)
        self.context.builder.returned(result, error=error, id=call, sent=sent, dropped=dropped)

    def _settle(self, messages: Iterable[framework.Message]) -> None:
        """Report the calls that the framework answered itself, such as those of tools that do not exist.

        Only what follows the last calls answers them: a model may give each of its replies the same call ids.
        """
        contents = [content for message in messages for content in message.contents]
        answers = itertools.takewhile(lambda content: content.type != "function_call", reversed(contents))
        for content in reversed([*answers]):
            if content.type == "function_result" and content.call_id in self._open:
                self._returned(content.call_id, error=str(content.exception or content.result), sent=False)


def _end_if(loss: ServerLostError | None) -> None:
    if loss is not None:
        raise framework.MiddlewareFailure(str(loss)) from loss


def _text(result: object) -> str:
    """Return what the framework tells its model of a tool's result, with a stand-in for what is not text."""
    if not isinstance(result, list):
        return str(result)
    return "\n".join(item.text or "" if item.type == "text" else f"[{item.media_type or item.type}]" for item in result)


def _usage(details: Mapping[str, Any] | None) -> Usage | None:
    """Return the tokens of one model call; the OpenAI APIs count cached ones as input and reasoning as output."""
    if details is None:
        return None
    return Usage(
        input_tokens=details.get("input_token_count"),
        output_tokens=details.get("output_token_count"),
        cached_tokens=details.get("cache_read_input_token_count"),
        reasoning_tokens=details.get("reasoning_output_token_count"),
    )


def _piece(update: framework.ChatResponseUpdate) -> str:
    """Return what an update adds to the text; some repeat the whole of it."""
    added = (item for item in update.contents if item.type == "text" and item.merge_mode != "replace")
    return "".join(item.text or "" for item in added)
