"""A model with fixed replies: a server of OpenAI's Chat Completions API that answers at once.

A request that demands a form (a JSON schema, a tool that must be called, or a prompt of a judge that says how its grade
is to be written) gets a grade in that form, and counts as one. One that offers tools gets a call of the first, until
there is a result. All others get `ANSWER`. Whoever asks for `/counts` is told how many of each there were, so that work
that was not done is noticed.

    python bench/fixed_model.py    prints its URL, and ends with its standard input
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

ANSWER = "It is under the mat: the manual says so, and nothing speaks against it."
REASON = "The answer has every fact, and contradicts none."
_FORMS = {
    "GRADE:": f"{REASON}\n\nGRADE: C",
    '"pass"': json.dumps({"reason": REASON, "pass": True, "score": 1.0}),
    '"score"': json.dumps({"reason": REASON, "score": 5}),
}
"""What a prompt says of the form of a grade, and a grade in it."""


@contextmanager
def fixed_model() -> Iterator[str]:
    """Run the model in a process of its own; yields its URL."""
    with subprocess.Popen(
        [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.communicate()


def counts(url: str) -> Counter[str]:
    """Return how many answers, tool calls and grades the model has given."""
    with urllib.request.urlopen(f"{url}/counts") as response:
        return Counter(json.load(response))


def instance(schema: dict[str, Any], known: dict[str, Any]) -> Any:
    """Return a value that a JSON schema allows; `known` are its definitions."""
    if "$ref" in schema:
        return instance(known[schema["$ref"].rpartition("/")[2]], known)
    for choice in ("anyOf", "oneOf", "allOf"):
        if choice in schema:
            return instance(schema[choice][0], known)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][-1]
    match schema.get("type"):
        case "object":
            return {name: instance(each, known) for name, each in schema.get("properties", {}).items()}
        case "array":
            return []
        case "string":
            return REASON
        case "boolean":
            return True
        case "integer" | "number":
            return schema.get("maximum", 1)
        case _:
            return None


def reply(asked: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the kind of the reply to a request, and its message."""
    form, tools = asked.get("response_format") or {}, asked.get("tools")
    if form.get("type") == "json_schema":
        return "grades", _text(json.dumps(_instance(form["json_schema"]["schema"])))
    if tools and asked.get("tool_choice", "auto") not in ("auto", "none"):
        return "grades", _call(tools[0])
    if tools and not any(message["role"] == "tool" for message in asked["messages"]):
        return "calls", _call(tools[0])
    prompt = "".join(str(message["content"]) for message in asked["messages"])
    for demand, grade in _FORMS.items():
        if demand in prompt:
            return "grades", _text(grade)
    return "answers", _text(ANSWER)


def _instance(schema: dict[str, Any]) -> Any:
    return instance(schema, schema.get("$defs", {}))


def _text(content: str) -> dict[str, Any]:
    return {"role": "assistant", "content": content}


def _call(tool: dict[str, Any]) -> dict[str, Any]:
    called = {"name": tool["function"]["name"], "arguments": json.dumps(_instance(tool["function"]["parameters"]))}
    return {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "type": "function", "function": called}]}


def _completion(message: dict[str, Any]) -> dict[str, Any]:
    end = "tool_calls" if "tool_calls" in message else "stop"
    return {
        "id": "r",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": end}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 5, "total_tokens": 14},
    }


async def _serve() -> None:
    given: Counter[str] = Counter()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                if head.startswith(b"get"):
                    content: Any = given
                else:
                    length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0])
                    kind, message = reply(json.loads(await reader.readexactly(length)))
                    given[kind] += 1
                    content = _completion(message)
                body = json.dumps(content).encode()
                about = b"Content-Type: application/json\r\nContent-Length: %d" % len(body)
                writer.write(b"HTTP/1.1 200 OK\r\n" + about + b"\r\n\r\n" + body)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=1000)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", flush=True)
    await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(_serve())
