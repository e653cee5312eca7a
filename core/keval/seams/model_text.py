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


_LONGEST = 100_000
"""Characters above which a text is no call."""
# Code fences, and how Hermes and Qwen, Llama, Mistral, Granite, DeepSeek and Kimi mark calls.
_MARKS = re.compile(
    r"```[\w-]*|</?(?:\w+:)?(?:tool_calls?|function_calls?|tools?)>|\[(?:TOOL_CALLS|ARGS)\]|<[|｜][^|｜<>]{1,40}[|｜]>"
)
_BEGUN = re.compile(
    r"^(?:<(?:\w+:)?(?:tool_call|function_call|invoke |function=)|\[TOOL_CALLS\]|<[|｜](?:tool|python))", re.M
)
# What stands before a call: that of an earlier one, and, as agents of the ReAct kind write it, a thought.
_GAP = re.compile(r"[\s,;]*(?:(?:Thought:.*?\n[ \t]*)?Action:\s*)?", re.DOTALL)
_NAMED = re.compile(r"(?:functions?[.\s]\s*)?([\w.-]+?)(?::\d+)?\s*+(?:Action Input:\s*+)?(?={)")
# Claude and Qwen's coders write XML, and so does GLM.
_XML = re.compile(
    r"<(?:function=|(?:\w+:)?invoke name=\")([\w.-]+)\"?>(.*?)(?:</(?:\w+:)?(?:function|invoke)>|\Z)"
    r"|([\w.-]+)\s*((?:<arg_key>.*?</arg_value>\s*)+)",
    re.DOTALL,
)
_PARAMETER = re.compile(r"<(?:(?:\w+:)?parameter(?:=| name=\")|arg_key>)([\w.-]+)")
# Small models write code, `search(q="x")`, or, after a title of the MCP SDK, `searchArguments:` and a line for each.
_ARGUMENT = r"""(?:\w++\.)*+(\w++)\s*+[:=]\s*+(?:"[^"]*"|'[^']*'|[^\s,"')]++)"""
_SPOKEN = re.compile(
    rf"(?:\[|print\()?([\w-]+?)(?:\(|(?:Arguments)?:[ \t]*\n|(?=Arguments\.))\s*+((?:{_ARGUMENT}[\s,]*+)*+)[)\]]*"
)
_ARGUMENTS = ("arguments", "parameters", "args", "input", "action_input")
_ABOUT_CALLS = re.compile(
    r"`|\b(?:call(?:s|ed|ing)?|tools?|functions?|json|schemas?|arguments?|parameters?|api|mcp|invok\w+|returns)\b", re.I
)


def written_calls(
    text: str, tools: Mapping[str, Mapping[str, Any] | None], question: str | None = None
) -> Sequence[str]:
    """Return the tools that a text is calls of; none if it is anything else, such as a text that shows a call.

    `tools` are those that the model was offered, each with the JSON Schema of its arguments, or `None` if that is
    unknown. Arguments fit if all that are required are there, and no other than the schema has.

    A text is calls as a whole. A `question` is given if nothing was called to answer it: then what follows calls, on
    lines of its own, is a result that the model invented, unless the question or these lines are about calls.
    """
    if not tools or len(text) > _LONGEST:
        return ()
    asks = question is not None and not _ABOUT_CALLS.search(question)
    if asks and (begun := _BEGUN.search(text)) is not None and text.count("```", 0, begun.start()) % 2 == 0:
        text = text[begun.start() :]
    calls, rest = _calls(_MARKS.sub(" ", text).strip("` \t\r\n"))
    alone = not rest or (asks and rest.startswith("\n") and not _ABOUT_CALLS.search(rest))
    fits = alone and all(name in tools and _fit(arguments, tools[name] or {}) for name, arguments in calls)
    return [name for name, _ in calls] if fits else ()


def _calls(text: str) -> tuple[Sequence[tuple[str, Mapping[str, Any]]], str]:
    """Return the calls that a text begins with, and the rest, which is what comes behind the last of them."""
    calls: list[tuple[str, Mapping[str, Any]]] = []
    decoder, end, code = json.JSONDecoder(), 0, False
    while end < len(text) and (gap := _GAP.match(text, end)) is not None:
        try:
            if (xml := _XML.match(text, gap.end())) is not None:
                inner = (xml[2] or "").strip()
                told = (
                    _mapping(json.loads(inner)) if inner.startswith("{") else dict.fromkeys(_PARAMETER.findall(xml[0]))
                )
                calls.append((xml[1] or xml[3], told))
                end = xml.end()
            elif (spoken := _SPOKEN.match(text, gap.end())) is not None:
                calls.append((spoken[1], dict.fromkeys(re.findall(_ARGUMENT, spoken[2]))))
                end, code = spoken.end(), True
            else:
                named = _NAMED.match(text, gap.end())
                value, after = decoder.raw_decode(text, (named or gap).end())
                calls += [(named[1], _mapping(value))] if named else [*_told(value)]
                end = after
        except (ValueError, RecursionError):
            break
    rest = text[end:].strip(" \t\r,;")
    # Code that explanations follow is shown; other calls are not shown before it is said what they are.
    return () if code and rest else calls, rest


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
        name = next((found[key] for key in ("name", "function", "tool", "tool_name", "action") if key in found), None)
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
    # Small models write values into the schema that they were given.
    filled = arguments.get("properties")
    if arguments.get("type") == "object" and isinstance(filled, Mapping) and filled:
        return not any(isinstance(value, Mapping) for value in filled.values()) and _fit(filled, schema)
    required, known = schema.get("required"), schema.get("properties")
    if isinstance(required, list) and not all(name in arguments for name in required):
        return False
    # They write down, too, that it is an object.
    return not isinstance(known, Mapping) or not known or all(name in known or name == "type" for name in arguments)
