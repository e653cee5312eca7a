"""A conversation with a remote agent: messages sent, tasks followed to their end."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import aclosing, suppress
from uuid import uuid4

import attrs
from a2a.types.a2a_pb2 import Artifact, Message, Part, Role, StreamResponse, Task, TaskState, TaskStatus
from google.protobuf.json_format import MessageToJson

from keval.plugin import Context, TrialError
from keval_a2a.remote import RemoteAgent

_ENDED = {
    TaskState.TASK_STATE_COMPLETED,
    TaskState.TASK_STATE_FAILED,
    TaskState.TASK_STATE_CANCELED,
    TaskState.TASK_STATE_REJECTED,
}
_WAITING = {TaskState.TASK_STATE_INPUT_REQUIRED, TaskState.TASK_STATE_AUTH_REQUIRED}
_FAILURES = {
    TaskState.TASK_STATE_FAILED: ("task_failed", "the agent's task failed"),
    TaskState.TASK_STATE_CANCELED: ("task_canceled", "the agent's task was canceled"),
    TaskState.TASK_STATE_REJECTED: ("task_rejected", "the agent rejected the task"),
    TaskState.TASK_STATE_AUTH_REQUIRED: ("auth_required", "the agent asks for a login; give it as `headers`"),
}
_POLL = (0.1, 0.2, 0.5, 1.0)
"""Seconds between looks at a task that goes on; the last is repeated."""
_CANCEL = 2.0
"""Seconds for the agent to take the word that its task is canceled."""


@attrs.define
class A2AConversation:
    """Sends one message after the other with one context id. `metadata` goes with each."""

    _remote: RemoteAgent
    _context: Context
    _metadata: Mapping[str, object]
    _context_id: str = attrs.field(default="", init=False)
    _waiting_task: str = attrs.field(default="", init=False)
    _begun: bool = attrs.field(default=False, init=False)

    async def ask(self, text: str) -> None:
        """Send a message; see `keval.plugin.Conversation`."""
        builder = self._context.builder
        with builder.turn(text):
            reply = Reply()
            try:
                async with aclosing(self._remote.send(self._message(text))) as responses:
                    async for response in responses:
                        piece = reply.take(response)
                        if self._context.streams:
                            builder.streamed(piece)
                await self._follow(reply)
            except BaseException:
                await self._cancel(reply)
                raise
            builder.said(reply.answer())
        self._begun, self._context_id = True, reply.context_id
        # A task that waits for input goes on by the next message, if that names it.
        self._waiting_task = reply.task_id if reply.state in _WAITING else ""

    def _message(self, text: str) -> Message:
        """Return a message; the system prompt has no other place than before the first."""
        parts = [self._context.instructions, text] if self._context.instructions and not self._begun else [text]
        return Message(
            message_id=str(uuid4()),
            role=Role.ROLE_USER,
            parts=[Part(text="\n\n".join(parts))],
            context_id=self._context_id,
            task_id=self._waiting_task,
            metadata=dict(self._metadata),
        )

    async def _follow(self, reply: Reply) -> None:
        """Wait for the end of a task that goes on although the agent responded, or its stream ended."""
        looks = 0
        while reply.task_id and reply.state not in _ENDED | _WAITING:
            await asyncio.sleep(_POLL[min(looks, len(_POLL) - 1)])
            looks += 1
            reply.take_task(await self._remote.task(reply.task_id))

    async def _cancel(self, reply: Reply) -> None:
        """Cancel the task of a trial that ends without its answer, such as one whose time is over."""
        if reply.task_id and reply.state not in _ENDED:
            with suppress(TimeoutError, TrialError):  # the trial fails for its own reason
                async with asyncio.timeout(_CANCEL):
                    await self._remote.cancel(reply.task_id)


@attrs.define
class Reply:
    """What an agent has responded to one message so far."""

    context_id: str = ""
    task_id: str = ""
    state: TaskState = TaskState.TASK_STATE_UNSPECIFIED
    _said: str = ""
    _artifacts: dict[str, str] = attrs.field(factory=dict)

    def take(self, response: StreamResponse) -> str:
        """Read a response, and return the piece of the answer in it."""
        match response.WhichOneof("payload"):
            case "message":
                self.context_id = response.message.context_id
                self._said = _text(response.message.parts)
                return self._said
            case "task":
                return self.take_task(response.task)
            case "status_update":
                update = response.status_update
                self._take_status(update.task_id, update.context_id, update.status)
            case "artifact_update":
                artifact = response.artifact_update
                return self._take_artifact(artifact.artifact, append=artifact.append)
        return ""

    def take_task(self, task: Task) -> str:
        """Read a task as it is now."""
        self._take_status(task.id, task.context_id, task.status)
        return "".join([self._take_artifact(artifact, append=False) for artifact in task.artifacts])

    def answer(self) -> str:
        """Return the text of the artifacts; without them, of the last message. Raises TrialError: it has none."""
        if (failure := _FAILURES.get(self.state)) is not None:
            kind, problem = failure
            raise TrialError(f"{problem}: {self._said}" if self._said else problem, kind=kind)
        return "\n\n".join(filter(None, self._artifacts.values())) or self._said

    def _take_status(self, task_id: str, context_id: str, status: TaskStatus) -> None:
        self.task_id, self.context_id, self.state = task_id, context_id, status.state
        if status.HasField("message"):
            self._said = _text(status.message.parts)

    def _take_artifact(self, artifact: Artifact, *, append: bool) -> str:
        text = _text(artifact.parts)
        earlier = self._artifacts.get(artifact.artifact_id, "")
        self._artifacts[artifact.artifact_id] = earlier + text if append else text
        # A task is told whole whenever it is looked at; what was told before is no new piece.
        return "" if text == earlier and not append else text


def _text(parts: Iterable[Part]) -> str:
    """Return what parts say: texts, which may be pieces of one, and data as JSON. Files are not part of an answer."""
    texts = (MessageToJson(part.data, indent=None) if part.HasField("data") else part.text for part in parts)
    return "".join(texts)
