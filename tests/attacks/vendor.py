"""A vendor on loopback that says whatever an attack has it say: tokens, tool calls and arguments, as raw JSON."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TypeAlias

import attrs


def nested(depth: int) -> str:
    """Return JSON of so many objects, each in the one before."""
    return '{"a":' * depth + "1" + "}" * depth


@attrs.define
class Vendor:
    """Answers each request by the API that its path is of, and counts them.

    `usage` are the input and output tokens, as JSON, and `parts` the cached and reasoning ones. `calls(number)` says
    how many calls of the tool `tool` the reply to the request of this number makes, and `arguments` with what.
    """

    usage: tuple[str, str] = ("10", "5")
    parts: tuple[str, str] = ("0", "0")
    calls: Callable[[int], int] = lambda number: 0
    tool: str = "add"
    arguments: str = "{}"
    answer: str = "It is 5."
    whole_usage: str | None = None
    asked: list[bytes] = attrs.field(factory=list)

    def reply(self, path: str, body: bytes) -> str:
        """Return the body of a reply."""
        self.asked.append(body)
        number = len(self.asked)
        ids = [f"call-{number}-{call}" for call in range(self.calls(number))]
        said, name, given = json.dumps(self.answer), json.dumps(self.tool), self.arguments
        told = f'"name": {name}, "arguments": {json.dumps(given)}'
        (fresh, out), (cached, thought) = self.usage, self.parts
        if path.endswith("/chat/completions"):
            usage = (
                f'{{"prompt_tokens": {fresh}, "completion_tokens": {out}, "total_tokens": 15,'
                f' "prompt_tokens_details": {{"cached_tokens": {cached}}},'
                f' "completion_tokens_details": {{"reasoning_tokens": {thought}}}}}'
            )
            listed = ", ".join(f'{{"id": "{call}", "type": "function", "function": {{{told}}}}}' for call in ids)
            message = f'"content": null, "tool_calls": [{listed}]' if ids else f'"content": {said}'
            return (
                f'{{"id": "x", "object": "chat.completion", "created": 1, "model": "m", "choices": [{{"index": 0,'
                f' "message": {{"role": "assistant", {message}}}, "finish_reason": "{"tool_calls" if ids else "stop"}"'
                f'}}], "usage": {self.whole_usage or usage}}}'
            )
        if path.endswith("/responses"):
            usage = (
                f'{{"input_tokens": {fresh}, "output_tokens": {out}, "total_tokens": 15,'
                f' "input_tokens_details": {{"cached_tokens": {cached}}},'
                f' "output_tokens_details": {{"reasoning_tokens": {thought}}}}}'
            )
            items = ", ".join(
                f'{{"type": "function_call", "id": "{call}", "call_id": "{call}", "status": "completed", {told}}}'
                for call in ids
            )
            text = (
                f'{{"type": "message", "id": "m", "role": "assistant", "status": "completed", "content":'
                f' [{{"type": "output_text", "text": {said}, "annotations": []}}]}}'
            )
            return (
                f'{{"id": "x", "object": "response", "created_at": 1, "status": "completed", "model": "m",'
                f' "parallel_tool_calls": true, "tool_choice": "auto", "tools": [], "output": [{items or text}],'
                f' "usage": {self.whole_usage or usage}}}'
            )
        if path.endswith("/messages"):
            usage = f'{{"input_tokens": {fresh}, "output_tokens": {out}, "cache_read_input_tokens": {cached}}}'
            items = ", ".join(
                f'{{"type": "tool_use", "id": "{call}", "name": {name}, "input": {given}}}' for call in ids
            )
            text = f'{{"type": "text", "text": {said}}}'
            return (
                f'{{"id": "x", "type": "message", "role": "assistant", "model": "m", "content": [{items or text}],'
                f' "stop_reason": "{"tool_use" if ids else "end_turn"}", "stop_sequence": null,'
                f' "usage": {self.whole_usage or usage}}}'
            )
        usage = (
            f'{{"promptTokenCount": {fresh}, "candidatesTokenCount": {out}, "cachedContentTokenCount": {cached},'
            f' "thoughtsTokenCount": {thought}}}'
        )
        items = ", ".join(f'{{"functionCall": {{"name": {name}, "args": {given}}}}}' for _ in ids)
        return (
            f'{{"candidates": [{{"content": {{"role": "model", "parts": [{items or f"""{{"text": {said}}}"""}]}},'
            f' "finishReason": "STOP", "index": 0}}], "usageMetadata": {self.whole_usage or usage}}}'
        )


def _chunks(told: str) -> str:
    """Return a reply of Chat Completions as the events of a stream."""
    reply = json.loads(told)
    (choice,) = reply["choices"]
    delta = choice.pop("message")
    for index, call in enumerate(delta.get("tool_calls", ())):
        call["index"] = index
    chunk = {**reply, "object": "chat.completion.chunk", "choices": [{**choice, "delta": delta}]}
    return f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n"


Answered: TypeAlias = tuple[int, Mapping[str, str], bytes]
"""The status of an answer, its headers, and its body."""


@contextmanager
def serving(vendor: Vendor) -> Iterator[Mapping[str, str]]:
    """Serve a vendor in a thread, and yield the environment that leads to it."""

    def answer(path: str, body: bytes) -> Answered:
        told, streams = vendor.reply(path, body), b'"stream":true' in body
        kind = "text/event-stream" if streams else "application/json"
        return 200, {"content-type": kind}, (_chunks(told) if streams else told).encode()

    with answering(answer) as environ:
        yield environ


@contextmanager
def answering(answer: Callable[[str, bytes], Answered]) -> Iterator[Mapping[str, str]]:
    """Answer each request by its path and body, and yield the environment that leads to that for three vendors."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            status, headers, content = answer(self.path.partition("?")[0], body)
            self.send_response(status)
            for name, value in {**headers, "content-length": str(len(content))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        base = f"http://127.0.0.1:{server.server_address[1]}"
        try:
            yield {
                "OPENAI_BASE_URL": f"{base}/v1",
                "ANTHROPIC_BASE_URL": base,
                "GOOGLE_GEMINI_BASE_URL": base,
                **dict.fromkeys(("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY"), "key-of-nobody"),
            }
        finally:
            server.shutdown()
            thread.join()
