"""What a model is shown of each kind of content in a tool's result, by adapter and wire: the table of docs/content.md.

Each cell is read off a captured request to the model.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

import attrs
import orjson
import pytest

from keval import Sample, ToolCall
from keval.execute.trial.reconciliation import check, merge
from keval.plugin import Blob, Context, Endpoint, Model, TranscriptBuilder
from keval.records.transcript import Content
from keval.seams.interfaces import Closable
from keval_gateway import ChatCall, ChatReply, ChatRequest, wire_urls
from keval_gateway.app import build_app
from keval_loopback.serving import serve
from keval_mcp import Stdio
from tests.agents.servers import gallery
from tests.conftest import Project
from tests.contexts import started
from tests.stdio_server import ENVIRONMENT

DOCS = Path(__file__).parents[2] / "docs" / "content.md"

ADAPTERS: Mapping[str, tuple[str, str, Mapping[str, Any]]] = {
    "`gadk`, `gemini`": ("keval_gadk", "Gadk", {"api": "gemini"}),
    "`gadk`, `anthropic`": ("keval_gadk", "Gadk", {"api": "anthropic"}),
    "`gadk`, `chat`": ("keval_gadk", "Gadk", {"api": "chat"}),
    "`gadk`, `responses`": ("keval_gadk", "Gadk", {"api": "responses"}),
    "`ms`, `chat`": ("keval_ms", "Ms", {"api": "chat"}),
    "`ms`, `responses`": ("keval_ms", "Ms", {"api": "responses"}),
    "`openai`, `chat`": ("keval_openai", "OpenAI", {"api": "chat"}),
    "`openai`, `chat`, with `audio`": ("keval_openai", "OpenAI", {"inputs": ("image", "pdf", "audio")}),
    "`openai`, `responses`": ("keval_openai", "OpenAI", {"api": "responses"}),
    "`anthropic`": ("keval_anthropic", "Anthropic", {}),
    "`claude-code`": ("keval_claude_code", "ClaudeCode", {}),
}
TOOLS = {
    "image": "image",
    "audio": "audio",
    "link": "resource_link",
    "text resource": "resource_text",
    "PDF": "resource_pdf",
    "other bytes": "resource_other",
    "structured": "structured",
    "structured alone": "structured_alone",
}
"""The tool whose result a column of the table, or the sentence below it, is about."""
EVERYWHERE = {
    "link": "text",
    "text resource": "text",
    "other bytes": "dropped",
    "structured": "JSON",
    "structured alone": "JSON",
}
"""What the sentences below the table say of every agent, but for what stands in the text's place."""
IN_PLACE_OF_TEXT = {"`claude-code`": {"structured": "JSON only"}}

MEDIA = {"image": gallery.PNG, "audio": gallery.WAV, "resource_pdf": gallery.PDF, "resource_other": gallery.ZIP}
TEXTS = {"resource_link": gallery.LINK, "resource_text": gallery.WRITTEN}
FORMS = {"image_url": "image", "input_image": "image", "image": "image", "input_audio": "sound"}
FORMS |= dict.fromkeys(["document", "file", "input_file"], "file")

Shown: TypeAlias = Any
"""What stands in a request for the result of one call: JSON of its wire."""


@attrs.frozen
class Told:
    """What came of a trial that called every tool: what was shown of each result, the calls, and the blobs."""

    shown: Mapping[str, Shown]
    calls: Mapping[str, ToolCall]
    blobs: Mapping[str, Blob]


async def play(
    module: str, name: str, options: Mapping[str, Any], only: Sequence[str] = (), *, tap: bool = True
) -> Told:
    """Run a trial in which the model calls all tools, or only some, at once, through the tap or without it."""
    requests: list[ChatRequest] = []

    def respond(request: ChatRequest) -> ChatReply:
        requests.append(request)
        if any(message.role == "tool" for message in request.messages):
            return ChatReply("Done.")
        names = only or [tool.name for tool in request.tools]
        return ChatReply(calls=tuple(ChatCall(name, {}) for name in names))

    blobs: dict[str, Blob] = {}
    async with AsyncExitStack() as stack:
        provider = Stdio(command=sys.executable, args=("-m", "tests.agents.servers.gallery"), env=ENVIRONMENT, tap=tap)
        source = await stack.enter_async_context(started(provider, "gallery"))
        base = await stack.enter_async_context(serve(build_app(respond)))
        agent = getattr(import_module(module), name)(
            Model("simulated", "m", Endpoint("claude-sonnet-5-5", wire_urls(base), "key")), **options
        )
        sample, builder = (
            Sample("s1", "Show me all."),
            TranscriptBuilder(keep=lambda blob: blobs.update({blob.sha256: blob})),
        )
        given: Context = await stack.enter_async_context(source.open(sample, "t1"))
        context = attrs.evolve(given, builder=builder)
        transcript = merge(await agent.run(sample, context), context)
        check(transcript, context)
        logs = [server.log for server in context.servers if server.log is not None]
        blobs.update({blob.sha256: blob for log in logs for blob in log.blobs})
        if isinstance(agent, Closable):
            await agent.aclose()
    names = {call.id: call.name.rpartition("__")[2] for m in requests[-1].messages for call in m.calls}
    shown = {names[call]: part for call, part in RESULTS[requests[-1].wire](requests[-1].raw)}
    return Told(shown, {call.name: call for call in transcript.tool_calls}, blobs)


def of_chat(body: Any) -> Iterator[tuple[str, Shown]]:
    *_, last = body["messages"]
    following = last["content"] if last["role"] == "user" else []
    for message in body["messages"]:
        if message["role"] == "tool":
            numbers = re.findall(r"\[\w+ (\d+) of the next message\]", message["content"])
            yield message["tool_call_id"], [message["content"], *(following[int(number) - 1] for number in numbers)]


def of_responses(body: Any) -> Iterator[tuple[str, Shown]]:
    outputs = (item for item in body["input"] if item.get("type") == "function_call_output")
    yield from ((item["call_id"], item["output"]) for item in outputs)


def of_anthropic(body: Any) -> Iterator[tuple[str, Shown]]:
    blocks = (block for message in body["messages"] for block in message["content"] if isinstance(block, dict))
    yield from ((block["tool_use_id"], block["content"]) for block in blocks if block["type"] == "tool_result")


def of_gemini(body: Any) -> Iterator[tuple[str, Shown]]:
    parts = (part for content in body["contents"] for part in content["parts"] if "functionResponse" in part)
    yield from ((part["functionResponse"]["id"], part["functionResponse"]) for part in parts)


RESULTS: Mapping[str, Callable[[Any], Iterator[tuple[str, Shown]]]] = {
    "openai-chat": of_chat,
    "openai-responses": of_responses,
    "anthropic": of_anthropic,
    "gemini": of_gemini,
}


def cell(tool: str, shown: Shown) -> str:
    """Return in what form a request shows what a tool returned; `dropped` where it does not."""
    text = orjson.dumps(shown).decode()
    if tool.startswith("structured"):
        whole = all(block["text"] in text for block in gallery.RESULTS[tool]["content"])
        return ("JSON" if whole else "JSON only") if str(gallery.TOTAL) in text else "dropped"
    if tool in TEXTS:
        return "text" if TEXTS[tool] in text else "dropped"
    data = gallery.encoded(MEDIA[tool])
    return next(forms(shown, {data, data.replace("+", "-").replace("/", "_")}), "dropped")


def forms(shown: Shown, encoded: set[str]) -> Iterator[str]:
    """Yield the form of each part of a request that holds content with this base64."""
    if isinstance(shown, list):
        for part in shown:
            yield from forms(part, encoded)
    elif isinstance(shown, dict):
        kind = shown.get("type", "")
        if kind in FORMS and any(data in orjson.dumps(shown).decode() for data in encoded):
            yield FORMS[kind]
        elif (inline := shown.get("inline_data")) and inline["data"] in encoded:
            yield "image" if inline["mime_type"].startswith("image/") else "file"
        else:
            for part in shown.values():
                yield from forms(part, encoded)
    elif isinstance(shown, str) and any(data in shown for data in encoded):
        yield "base64 as text"


def table() -> dict[str, dict[str, str]]:
    """Return the table of the docs: by adapter and column."""
    lines = [line.strip("| \n").split(" | ") for line in DOCS.read_text(encoding="utf-8").splitlines() if "|" in line]
    head, _, *rows = lines
    return {
        row[0]: EVERYWHERE | IN_PLACE_OF_TEXT.get(row[0], {}) | dict(zip(head[1:], row[1:], strict=True))
        for row in rows
        if row[0] in ADAPTERS
    }


@pytest.fixture(scope="module")
def told() -> Told:
    """A trial of keval's own agent."""
    return asyncio.run(asyncio.wait_for(play("keval_openai", "OpenAI", {}), 60))


@pytest.mark.parametrize("adapter", [*ADAPTERS])
def test_a_model_is_shown_what_the_table_says(adapter: str) -> None:
    if adapter == "`claude-code`":
        pytest.importorskip("claude_agent_sdk", reason="keval-claude-code is installed apart")

    told = asyncio.run(asyncio.wait_for(play(*ADAPTERS[adapter]), 60))

    cells = {column: cell(tool, told.shown[tool]) for column, tool in TOOLS.items()}
    assert table()[adapter] == cells
    # What is not shown is recorded as dropped, and nothing else is.
    lost = {tool for column, tool in TOOLS.items() if cells[column] == "dropped"}
    assert lost == {tool for tool in TOOLS.values() if told.calls[tool].dropped}
    # Structured content takes the place of no image.
    both = told.shown["image_and_structure"]
    assert (cells["image"], True) == (cell("image", both), str(gallery.TOTAL) in orjson.dumps(both).decode())
    assert all(gallery.WRITTEN in orjson.dumps(told.shown[name]).decode() for name in ("text", "resource_text"))


def test_a_transcript_keeps_content_in_blobs(told: Told) -> None:
    image, link, alone = (told.calls[name] for name in ("image", "resource_link", "structured_alone"))

    sha256 = hashlib.sha256(gallery.PNG).hexdigest()
    assert (Content("image", "image/png", sha256, len(gallery.PNG)),) == image.content
    assert f"a dot\n[image/png blobs/{sha256}]" == image.result
    assert (gallery.PNG, "image/png") == (told.blobs[sha256].content, told.blobs[sha256].media_type)
    assert (Content("resource_link", "text/plain", uri=gallery.LINK),) == link.content
    (structured,) = alone.content
    assert {"total": gallery.TOTAL} == json.loads(told.blobs[structured.sha256 or ""].content)


@pytest.mark.parametrize("adapter", ["`openai`, `chat`", "`gadk`, `gemini`"])
def test_without_a_tap_an_adapter_keeps_what_it_saw(adapter: str) -> None:
    told = asyncio.run(asyncio.wait_for(play(*ADAPTERS[adapter], only=("image", "audio"), tap=False), 60))

    kept = {name: told.blobs[content.sha256 or ""].content for name, c in told.calls.items() for content in c.content}
    assert {"image": gallery.PNG, "audio": gallery.WAV} == kept
    assert {"image": (), "audio": ("audio",)} == {name: call.dropped for name, call in told.calls.items()}


def test_structured_content_is_shown_once(told: Told) -> None:
    shown = {name: orjson.dumps(told.shown[name]).decode().count("mat") for name in told.shown if "repeated" in name}

    assert dict.fromkeys(("repeated", "repeated_items", "repeated_object"), 1) == shown


@pytest.mark.parametrize(
    ("adapter", "shown", "dropped"),
    [
        ("`openai`, `chat`", "Error:\n[image 2 of the next message]\nbroken", ()),
        ("`anthropic`", "[image of type image/png, which cannot be shown here]\nbroken", ("image",)),
    ],
)
def test_an_error_has_the_form_that_its_api_takes(adapter: str, shown: str, dropped: tuple[str, ...]) -> None:
    told = asyncio.run(asyncio.wait_for(play(*ADAPTERS[adapter], only=("image", "failed")), 60))

    failed = told.shown["failed"]
    assert (shown, dropped) == (failed[0] if isinstance(failed, list) else failed, told.calls["failed"].dropped)
    assert (dropped == ()) == (gallery.encoded(gallery.PNG) in orjson.dumps(failed).decode())


def test_a_model_that_reads_only_text_is_shown_only_text() -> None:
    told = asyncio.run(asyncio.wait_for(play("keval_openai", "OpenAI", {"inputs": ()}, only=("image",)), 60))

    assert {"image": ["a dot\n[image of type image/png, which cannot be shown here]"]} == told.shown
    assert ("image",) == told.calls["image"].dropped


def test_audio_is_refused_for_an_api_that_has_none(project: Project) -> None:
    agents = "agents: {gpt: {type: openai, model: gpt-4o, api: responses, inputs: [audio]}}"
    project.write(eval_yaml=f"dataset: {{path: q.jsonl}}\n{agents}\n", q_jsonl='{"id": "q", "question": "?"}\n')

    outcome = project.keval("validate", str(project.root / "eval.yaml"))

    assert 2 == outcome.code
    assert (
        "eval.yaml:2:15: the Responses API takes no `audio` as one of the `inputs`; leave it out, or set `api: chat`"
        in outcome.stderr
    )
