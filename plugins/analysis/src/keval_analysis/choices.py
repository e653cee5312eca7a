"""Choices: which texts of contexts the agent of a trial read, and which tools it called, as far as that is known."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Literal

from keval.records.end_state import GivenText
from keval.records.manifest import ConditionEntry
from keval.records.transcript import Transcript


class UnknownError(Exception):
    """What was expected can neither be confirmed nor refuted."""


def is_read(name: str, transcript: Transcript) -> bool:
    """Return whether the agent read a skill, or another text that a context gave.

    It did if a model request has the text. Where keval saw no request, a call that gets the text shows that, too.
    Raises UnknownError.
    """
    given = [text for text in transcript.texts if name in (text.name, _plain(text))]
    if any(text.read or _asked_for(text, transcript) for text in given):
        return True
    # Then the agent reads it with this tool or not at all.
    by_tool = bool(given) and all(text.way == "read_skill" for text in given)
    if transcript.request is None and not (by_tool and transcript.unlisted_calls == 0):
        raise UnknownError("keval saw no model request")
    if not given and transcript.end_state is not None and transcript.end_state.facts:
        raise UnknownError("no context gave it, and of other texts in a workspace nothing is known")
    return False


def _asked_for(text: GivenText, transcript: Transcript) -> bool:
    file = f"{text.way}/{_plain(text)}/SKILL.md"
    return any(
        call.arguments.get("name") == _plain(text)
        if text.way in (call.name, call.tool)
        else transcript.request is None and file in json.dumps(call.arguments, default=str)
        for call in transcript.tool_calls
        if call.error is None
    )


def _plain(text: GivenText) -> str:
    """Return the name of a skill without that of its plugin."""
    return text.name.rpartition(":")[2]


def is_called(name: str, transcript: Transcript, condition: ConditionEntry | None) -> bool:
    """Return whether the agent called a tool, by the name that the agent has for it or by the server's.

    Raises UnknownError.
    """
    if any(name in (call.name, call.tool) for call in transcript.tool_calls):
        return True
    # `None` is unknown, too.
    if transcript.unlisted_calls != 0:
        raise UnknownError("not all of its tool calls are known")
    servers = condition.servers.values() if condition else ()
    if transcript.tool_calls_by == "tap" and all(name not in (*each.tools, *each.aliases) for each in servers):
        raise UnknownError("its agent does not tell which tools of its own it called")
    return False


def choices(kind: Literal["reads", "calls"], transcript: Transcript) -> Mapping[str, str]:
    """Return the skills that were read (`reads`) or the tools that were called, each with its other name.

    The tool that reads skills is none of these, nor is one of the agent's own.
    """
    if kind == "reads":
        skills = [text for text in transcript.texts if text.kind in ("skill", "neighbour")]
        return {text.name: _plain(text) for text in skills if text.read or _asked_for(text, transcript)}
    ways = {text.way for text in transcript.texts}
    calls = [call for call in transcript.tool_calls if not call.own and ways.isdisjoint((call.name, call.tool))]
    return {call.name: call.tool or call.name for call in calls}
