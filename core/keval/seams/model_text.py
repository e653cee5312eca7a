"""What a model writes into its text where nobody between it and keval reads it: its reasoning, and calls of tools.

Servers of open models have parsers for both, which are often not switched on.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from keval.records.transcript import Transcript

_TAG = r"think|thinking|thought|reasoning"
_OPEN = re.compile(rf"\s*<({_TAG})>", re.IGNORECASE)
_ANY_OPEN = re.compile(rf"<(?:{_TAG})>", re.IGNORECASE)
_CLOSE = re.compile(rf"(?<![`'\"])</(?:{_TAG})>(?![`'\"])", re.IGNORECASE)
"""The end of the reasoning; a text that quotes the tag talks about it."""


def split_reasoning(text: str) -> tuple[str, str]:
    """Split a reply into the reasoning that it begins with and the answer; the reasoning is empty if there is none.

    Reasoning stands between tags such as `<think>` and `</think>`. What comes before a lone closing tag is reasoning,
    too, as the opening tag may have been in the prompt; one that is never closed leaves no answer.
    """
    # Most replies have no tag, and are to cost no search by patterns.
    if "</" not in text and not text.lstrip().startswith("<"):
        return "", text
    parts: list[str] = []
    while (opened := _OPEN.match(text)) is not None:
        closed = re.compile(rf"</{opened[1]}>", re.IGNORECASE).search(text, opened.end())
        parts.append(text[opened.end() : closed.start() if closed else len(text)].strip())
        text = text[closed.end() :].lstrip() if closed else ""
    if not parts and (closed := _CLOSE.search(text)) is not None and not _ANY_OPEN.search(text, 0, closed.start()):
        return text[: closed.start()].strip(), text[closed.end() :].lstrip()
    return "\n\n".join(filter(None, parts)), text


def without_reasoning(transcript: Transcript) -> Transcript:
    """Return a transcript with the reasoning of each of the agent's texts kept apart from it."""
    messages = tuple(
        attrs.evolve(each, text=found[1], reasoning=found[0])
        if each.role == "assistant" and (found := split_reasoning(each.text))[1] != each.text
        else each
        for each in transcript.messages
    )
    return transcript if messages == transcript.messages else attrs.evolve(transcript, messages=messages)


_FENCE = re.compile(r"```[\w-]*[ \t]*\n(.*)\n[ \t]*```|`([^`]*)`", re.DOTALL)
# How Hermes and Qwen, Llama, Mistral, Granite and DeepSeek mark calls.
_MARKED = re.compile(
    r"<(tool_calls?|function_calls?|tools?)>(?P<tagged>.*?)(?:</\1>|$)"
    r"|<function=(?P<name>[^>\s]+)>(?P<arguments>.*?)(?:</function>|$)"
    r"|(?:\[TOOL_CALLS\]|<\|python_tag\|>|<\|tool_call\|>|<｜tool▁call▁begin｜>)(?P<after>.*)",
    re.DOTALL,
)
# Small models write code, `search(q="x")`, or, after a title of the MCP SDK, `searchArguments:` and a line for each.
_ARGUMENT = r"""(?:\w++\.)*+(\w++)\s*+[:=]\s*+(?:"[^"]*"|'[^']*'|[^\s,"')]++)"""
_SPOKEN = re.compile(rf"\[?([\w-]+?)(?:\(|(?:Arguments)?:\s*\n)\s*+((?:{_ARGUMENT}[\s,]*+)*+)\)?\]?")
_ARGUMENTS = ("arguments", "parameters", "args", "input")
_LONGEST = 100_000
"""Characters above which a text is no call."""


def written_calls(text: str, tools: Mapping[str, Mapping[str, Any] | None]) -> Sequence[str]:
    """Return the tools that a text, as a whole, is calls of; none if it is anything else.

    `tools` are those that the model was offered, each with the JSON Schema of its arguments, or `None` if that is
    unknown. Arguments fit if all that are required are there, and no other than the schema has.
    """
    if not tools or len(text) > _LONGEST:
        return ()
    try:
        calls = [*_calls(text.strip())]
    except (ValueError, RecursionError):
        return ()
    fits = all(name in tools and _fit(arguments, tools[name] or {}) for name, arguments in calls)
    return [name for name, _ in calls] if fits else ()


def _calls(text: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the calls that a text consists of. Raises ValueError: there is anything else in it."""
    fenced = _FENCE.fullmatch(text)
    if fenced is not None:
        yield from _calls((fenced[1] or fenced[2] or "").strip())
        return
    if (spoken := _SPOKEN.fullmatch(text)) is not None:
        yield spoken[1], dict.fromkeys(re.findall(_ARGUMENT, spoken[2]))
        return
    at = 0
    while (marked := _MARKED.match(text, at)) is not None:
        if marked["name"] is not None:
            yield marked["name"], _mapping(json.loads(marked["arguments"].strip() or "{}"))
        else:
            yield from _calls((marked["tagged"] if marked["tagged"] is not None else marked["after"]).strip())
        at = marked.end()
        at += len(text) - at - len(text[at:].lstrip())
    # Parallel calls follow each other, with `;` between them as Llama writes them.
    decoder = json.JSONDecoder()
    while at < len(text):
        value, at = decoder.raw_decode(text, at)
        yield from _told(value)
        at += len(text) - at - len(text[at:].lstrip(" \t\r\n,;"))
    if not text:
        raise ValueError("an empty text is no call")


def _told(value: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the calls that JSON tells, one or a list of them, as models are trained to write them."""
    if isinstance(value, list) and value:
        for each in value:
            yield from _told(each)
        return
    found = _mapping(value)
    inner = found.get("function")
    if isinstance(calls := found.get("tool_calls"), list) and calls:
        yield from _told(calls)
    elif isinstance(inner, Mapping):
        yield from _told(inner)
    else:
        name = next((found[key] for key in ("name", "function", "tool", "tool_name") if key in found), None)
        arguments = next((found[key] for key in _ARGUMENTS if key in found), None)
        if not isinstance(name, str) or arguments is None:
            raise ValueError("an object that names no tool, or no arguments")
        # OpenAI's own form has the arguments as JSON in a text.
        yield name, _mapping(json.loads(arguments) if isinstance(arguments, str) else arguments)


def _mapping(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError("no JSON object")
    return value


def _fit(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> bool:
    required, known = schema.get("required"), schema.get("properties")
    if isinstance(required, list) and not all(name in arguments for name in required):
        return False
    return not isinstance(known, Mapping) or not known or all(name in known for name in arguments)
