"""The choice of tools: which ones a question needs, in which order, and which found documents to open."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import attrs

from keval_gateway import ChatCall, ChatTool
from keval_simulator.conversation import PLACE_WORDS, Conversation, subject
from keval_simulator.json_schema import resolved, schema_type
from keval_simulator.preferences import states_preference
from keval_simulator.tool_arguments import fill_arguments, place_parameters
from keval_simulator.words import concepts, lexicon, split_identifier, stems

__all__ = ["Plan", "is_profile", "plan_calls"]

_MOST_PLACES = 4
_MOST_CALLS = 8
_NAME_WEIGHT = 2.0
_DESCRIPTION_WEIGHT = 0.5
_FITS = 0.5
"""What a tool gains that takes a place, when the question names one and shares a word with the tool."""
_NEEDED = 1.0
"""The score a tool must reach: a word of its name that two tools share, or two words of its description."""

_EFFECTS = lexicon(
    "update set save store create delete remove record remember write post send book cancel learn insert edit"
)
_READS = lexicon("get list search find read fetch show lookup query check describe count")
_PROFILE = frozenset({"prefer", "preference", "preferences", "profile", "favourites", "settings", "memory"})
_FREE_TEXT = lexicon("query question q search topic keywords prompt text term")
_ASKING = lexicon(
    "what which who whom whose when where why how is are can does do explain describe list find show tell give"
)
_COMPARING = stems("compare versus vs")
_PERSONAL = frozenset({"i", "me", "my", "i'm", "mine", "we", "our"})
_ADVICE = lexicon("should recommend recommendation suggest advice wear bring take pack plan good")
_SEARCHES = lexicon("search find lookup query")
_OPENS = lexicon("read open get fetch show view")
_NAMES = lexicon("page path url uri slug title document doc file article section")
_MOST_OPENED = 2


@attrs.frozen
class Plan:
    """What to do next: call tools, ask the user for what is missing, or answer."""

    step: Literal["call", "clarify", "answer"]
    calls: tuple[ChatCall, ...] = ()
    missing: tuple[str, ...] = ()


def _personal(conversation: Conversation) -> bool:
    """Tell whether a question asks what is good for this user."""
    words = set(conversation.question.lower().replace("’", "'").replace("?", " ").replace(",", " ").split())
    return bool(words & _PERSONAL) and bool(words & _ADVICE)


def is_profile(tool: str) -> bool:
    """Tell by its name whether a tool stores what is known of the user."""
    return bool(_PROFILE & set(split_identifier(tool)))


def plan_calls(
    tools: Sequence[ChatTool], conversation: Conversation, *, careful: bool = True, reads_on: bool = True
) -> Plan:
    """Decide the next step: the first stage of the plan with calls that were not made yet.

    Stages are: note what the user said of themselves, look the user up, look the answer up, then open what a search
    found. Without `careful` the user is not looked up, and without `reads_on` nothing is opened.
    """
    made = [(outcome.call.name, dict(outcome.call.arguments)) for outcome in conversation.outcomes]
    if len(made) >= _MOST_CALLS:
        return Plan("answer")
    for stage in _stages(tools, conversation, careful):
        wanted = [_calls(tool, conversation) for tool in stage]
        calls = tuple(call for found, _ in wanted for call in found if (call.name, dict(call.arguments)) not in made)
        if calls:
            return Plan("call", calls)
        if missing := tuple(name for _, lacking in wanted for name in lacking):
            return Plan("clarify", missing=missing)
    further = opening_calls(tools, conversation) if reads_on else []
    calls = tuple(call for call in further if (call.name, dict(call.arguments)) not in made)
    return Plan("call", calls) if calls else Plan("answer")


def _stages(tools: Sequence[ChatTool], conversation: Conversation, careful: bool) -> Iterator[list[ChatTool]]:
    profile = [tool for tool in tools if is_profile(tool.name)]
    # What opens a document needs its name, which a search is there to find.
    searched = any(is_search(tool.name) for tool in tools)
    lookups = [tool for tool in tools if tool not in profile and not (searched and opened_by(tool))]
    chosen = _chosen(lookups, conversation)
    answerable = any(found for found, _ in (_calls(tool, conversation) for tool in chosen))
    states = states_preference(conversation.question)
    if states:
        yield [tool for tool in profile if _has_effect(tool)]
    asks_profile = "preference" in concepts(conversation.question) and not states
    if asks_profile or (careful and answerable and _personal(conversation) and not states):
        yield [tool for tool in profile if not _has_effect(tool)]
    only_tells = states and "?" not in conversation.question and not conversation.named_places
    if chosen and not only_tells:
        yield chosen


def _has_effect(tool: ChatTool) -> bool:
    return _effect(tool) is not None


def _effect(tool: ChatTool) -> str | None:
    """Return the verb of a tool that changes something; `get_blog_post` only reads, whatever follows its verb."""
    verb = next((word for word in split_identifier(tool.name) if word in _EFFECTS or word in _READS), None)
    return verb if verb in _EFFECTS else None


def _chosen(tools: Sequence[ChatTool], conversation: Conversation) -> list[ChatTool]:
    """Return the best tool, and every other that the question names by a word of its own."""
    asked = subject(conversation)
    if "weather" in asked and "forecast" not in asked:
        asked.add("current")
    votes = {tool.name: _votes(tool, tools, asked) for tool in tools if _permitted(tool, conversation)}
    fitting = {tool.name for tool in tools if conversation.named_places and place_parameters(tool.parameters)}
    scored = {name: sum(vote.values()) + (_FITS if vote and name in fitting else 0) for name, vote in votes.items()}
    best = max(scored, key=lambda name: scored[name], default=None)
    if best is None or scored[best] < _NEEDED:
        return _for_bare_place(tools, conversation) or _searchers(tools, conversation)
    names = {best}
    names.update(
        name
        for name, vote in votes.items()
        if name != best and _related(vote, votes[best]) and any(weight >= _NAME_WEIGHT for weight in vote.values())
    )
    return [tool for tool in tools if tool.name in names]


def _related(vote: dict[str, float], best: dict[str, float]) -> bool:
    """Tell whether two tools share a word the question uses: a forecast joins the current weather, not a flight."""
    return bool(vote.keys() & best.keys())


def _votes(tool: ChatTool, tools: Sequence[ChatTool], asked: set[str]) -> dict[str, float]:
    """Return the weight of each word of the question that the tool has; a word that many tools have counts less."""
    own = _weights(tool)
    return {word: own[word] / sum(word in _weights(other) for other in tools) for word in asked & own.keys()}


def _weights(tool: ChatTool) -> dict[str, float]:
    described = dict.fromkeys(stems(tool.description), _DESCRIPTION_WEIGHT)
    return described | dict.fromkeys(stems(" ".join(split_identifier(tool.name))), _NAME_WEIGHT)


def _permitted(tool: ChatTool, conversation: Conversation) -> bool:
    """Tell whether a tool may be called; one that changes something only if the user's own words ask for that."""
    verb = _effect(tool)
    return verb is None or bool(stems(verb) & stems(conversation.question))


def _for_bare_place(tools: Sequence[ChatTool], conversation: Conversation) -> list[ChatTool]:
    """Return the first tool that takes a place, when the user says nothing but places ("Helsinki?")."""
    named = stems(" ".join(conversation.named_places))
    if not named or stems(conversation.question) - named - _COMPARING:
        return []
    return [tool for tool in tools if place_parameters(tool.parameters) and not _has_effect(tool)][:1]


def _searchers(tools: Sequence[ChatTool], conversation: Conversation) -> list[ChatTool]:
    """Return the first tool that takes free text, for a question that no tool names."""
    words = conversation.question.lower().split()
    asks = "?" in conversation.question or (words and words[0] in _ASKING)
    if not asks or len(stems(conversation.question)) == 0:
        return []
    for tool in tools:
        properties = tool.parameters.get("properties") or {}
        required = tool.parameters.get("required") or properties
        free = [name for name in required if _FREE_TEXT & set(split_identifier(name))]
        if free and not _has_effect(tool):
            return [tool]
    return []


def _calls(tool: ChatTool, conversation: Conversation) -> tuple[list[ChatCall], list[str]]:
    """Return the calls of one tool: one per place when it takes one place."""
    takes_place = len(place_parameters(tool.parameters)) == 1
    places = conversation.places[:_MOST_PLACES] if takes_place and conversation.places else (None,)
    calls: list[ChatCall] = []
    missing: list[str] = []
    for place in places:
        filled = fill_arguments(tool.parameters, conversation, place)
        if filled.missing:
            missing += filled.missing
        else:
            calls.append(ChatCall(tool.name, filled.arguments))
    return calls, ["city" if PLACE_WORDS & set(split_identifier(name)) else name for name in dict.fromkeys(missing)]


def is_search(tool: str) -> bool:
    """Tell by its name whether a tool searches."""
    return bool(_SEARCHES & set(split_identifier(tool)))


def opened_by(tool: ChatTool) -> str | None:
    """Return the parameter by which a tool opens one document, or `None` when it does something else."""
    words = split_identifier(tool.name)
    required = list(tool.parameters.get("required") or ())
    if not _OPENS & set(words) or is_search(tool.name) or len(required) != 1:
        return None
    (name,) = required
    schema = resolved((tool.parameters.get("properties") or {}).get(name), tool.parameters)
    return name if _NAMES & set(split_identifier(name)) and schema_type(schema) == "string" else None


def opening_calls(tools: Sequence[ChatTool], conversation: Conversation) -> list[ChatCall]:
    """Return the calls that open the first documents that searches for this question have named."""
    found = [outcome.reading.data for outcome in conversation.outcomes if is_search(outcome.call.name)]
    for tool in tools:
        if parameter := opened_by(tool):
            named = dict.fromkeys(name for data in found for name in _named(data, parameter))
            return [ChatCall(tool.name, {parameter: name}) for name in [*named][:_MOST_OPENED]]
    return []


def _named(data: Any, parameter: str) -> Iterator[str]:
    """Yield what a result has under a parameter's name, as a key of a record or as `name: value` in a text."""
    if isinstance(data, str):
        line = rf"^\W*{re.escape(parameter)}\W*:\W*?([^\s\"'`*,]+)"
        yield from re.findall(line, data, re.MULTILINE | re.IGNORECASE)
    elif isinstance(data, Mapping):
        for key, value in data.items():
            if key == parameter and isinstance(value, str):
                yield value
            else:
                yield from _named(value, parameter)
    elif isinstance(data, list):
        for item in data:
            yield from _named(item, parameter)
