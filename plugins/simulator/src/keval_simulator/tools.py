"""Tools: which ones a question needs, what is tried next, and which tool finds what another one takes."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

import attrs
import orjson

from keval_gateway import ChatCall, ChatTool
from keval_simulator.arguments import Filled, fill, several
from keval_simulator.conversation import Conversation, stated_in
from keval_simulator.corrections import corrected
from keval_simulator.found import taken_from_results
from keval_simulator.parameters import FORM, parameters_of
from keval_simulator.results import Outcome, shown
from keval_simulator.words import alike, lexicon, sentences, shares_stem, split_identifier, stems

_MOST_CALLS = 8
_MOST_TRIES = 3
_NAME, _SUMMARY, _DETAIL, _PARAMETER = 2.0, 0.8, 0.3, 0.6
"""The weight of a word of the question that a tool's name, the first sentence or the rest of its description, or a
parameter has. It is shared among the tools that have the word."""
_NEEDED = 0.5
_EXPLICIT = 3.0
"""The strength of arguments from which on a second tool is asked for what the first one has not told."""
_EFFECTS = lexicon("""
    update set save store create delete remove record remember write post send book cancel learn insert edit add move
    replace import merge apply clone init register submit restore archive refund pay format
    rename append put patch drop clear close upload commit push reset checkout execute run mark assign start stop
    """)
_READS = lexicon(
    "get list search find read fetch show lookup query check describe count view open convert calculate compute"
)
_LISTS = lexicon("list search find all lookup query show directory tree index tables log history")
_KEEPS = lexicon("remember preference preferences note memory insight profile learn memorize")
_PERSONAL = lexicon("i me my i'm mine we our")
_ADVICE = lexicon("should could recommend recommendation suggest advice plan good ideas")
_ASIDE = lexicon("info media size metadata multiple stat")
_HANDLES = lexicon("id name key number code path uri slug page title")


_FOUND = ("id", "name", "path", "url", "sql", "")
"""The kinds of values that one tool's result may name for another."""


@attrs.frozen
class Plan:
    """What to do next: the calls to make, or else what the user is asked for; without either, answer."""

    calls: tuple[ChatCall, ...] = ()
    missing: tuple[str, ...] = ()


@attrs.frozen
class _Aim:
    """How far one tool has got: calls to make next, results that can be used, or what is missing."""

    calls: tuple[ChatCall, ...] = ()
    useful: tuple[Outcome, ...] = ()
    missing: tuple[str, ...] = ()


def plan(tools: Sequence[ChatTool], conversation: Conversation, *, careful: bool = True) -> Plan:
    """Decide the next step from the results so far.

    It notes what users say of themselves, looks up what is kept of them where they ask for advice (unless it is not
    `careful`), looks the answer up, and opens what a search has found if the answer is not in it.
    """
    if len(conversation.outcomes) >= _MOST_CALLS:
        return Plan()
    keeping = [tool for tool in tools if _KEEPS & set(split_identifier(tool.name))]
    states = bool(stated_in(conversation.question))
    aims = [tool for tool in keeping if changes(tool)] if states else []
    only_tells = states and "?" not in conversation.question
    asked = set(conversation.question.lower().replace("?", " ").replace(",", " ").split())
    if not states and (_names(keeping, conversation) or (careful and asked & _PERSONAL and asked & _ADVICE)):
        aims += [tool for tool in keeping if not changes(tool)]
    calls = [call for tool in aims for call in _pursued(tool, tools, conversation).calls]
    if calls:
        return Plan(tuple(calls))
    if (aims and not states and _names(keeping, conversation)) or only_tells:
        return Plan()
    return _looked_up([tool for tool in tools if tool not in keeping], conversation)


def _names(tools: Sequence[ChatTool], conversation: Conversation) -> bool:
    asked = stems(conversation.question)
    return any(stems(" ".join(split_identifier(tool.name))) & asked & stems(" ".join(_KEEPS)) for tool in tools)


def _looked_up(tools: Sequence[ChatTool], conversation: Conversation) -> Plan:
    missing: tuple[str, ...] = ()
    useful: list[Outcome] = []
    for goals in chosen(tools, conversation):
        aims = [_pursued(tool, tools, conversation) for tool in goals]
        if calls := tuple(call for aim in aims for call in aim.calls):
            return Plan(calls)
        useful = [outcome for aim in aims for outcome in aim.useful]
        if useful:
            break
        missing = missing or tuple(dict.fromkeys(name for aim in aims for name in aim.missing))
    if useful and (uncovered := _uncovered(tools, conversation)):
        if call := _opened(tools, conversation, uncovered):
            return Plan((call,))
        further = [goals for goals in chosen(tools, conversation) if fill(goals[0], conversation).strength >= _EXPLICIT]
        for tool in (tool for goals in further[:2] for tool in goals):
            tells = any(shares_stem(word, _weights(tool)) for word in uncovered)
            if tells and (calls := _pursued(tool, tools, conversation).calls):
                return Plan(calls)
    return Plan(missing=() if useful or conversation.outcomes else missing)


def changes(tool: ChatTool) -> bool:
    """Tell by its name whether a tool changes something; `get_blog_post` only reads, and so does what takes numbers."""
    return _effect(tool) is not None


def _effect(tool: ChatTool) -> str | None:
    words = split_identifier(tool.name)
    verb = next((word for word in words if (word in _EFFECTS and "by" not in words) or word in _READS), None)
    kinds = {str(each.schema.get("type")) for each in parameters_of(tool.parameters) if each.required}
    return verb if verb in _EFFECTS and not (kinds and kinds <= {"number", "integer"}) else None


def _orders(question: str, verb: str) -> bool:
    """Tell whether a question tells to do something: "Cancel order 4", "please cancel", "I want to cancel"."""
    return bool(re.search(rf"(?:^|[.!?:;,] |\b(?:please|to|you|and|then|must|now) ){verb}\b", question.lower()))


def chosen(tools: Sequence[ChatTool], conversation: Conversation) -> Iterator[list[ChatTool]]:
    """Yield the tools to ask: the best one with those that the question names as well, then the second best."""
    asked = alike(conversation.topic)
    own = {tool.name: _weights(tool) for tool in tools}
    spread = {word: sum(word in weights for weights in own.values()) for word in asked}
    permitted = [tool for tool in tools if (verb := _effect(tool)) is None or _orders(conversation.question, verb)]
    exact = stems(conversation.topic)
    votes = {
        tool.name: {
            word: own[tool.name][word] / spread[word] / (1 if word in exact else 2)
            for word in asked & own[tool.name].keys()
        }
        for tool in permitted
    }
    fits = {tool.name: _fitness(tool, tools, conversation) for tool in permitted}
    score = {name: sum(vote.values()) + fits[name] for name, vote in votes.items()}
    ranked = sorted(permitted, key=lambda tool: -score[tool.name])
    first = conversation.question.lower().split()[:1]
    if "?" not in conversation.question and not asked & _WANTING and not _ASKING.intersection(first):
        names = any(span.kind not in ("word", "phrase") for span in conversation.asked)
        ranked = [tool for tool in ranked if votes[tool.name] or (names and fits[tool.name] >= _NEEDED)]
    named = {name: sum(weight for word, weight in vote.items() if word in exact) for name, vote in votes.items()}
    able = [tool for tool in ranked if score[tool.name] >= _NEEDED or named[tool.name] >= _NEEDED / 2]
    able = able or [tool for tool in ranked if fits[tool.name] >= 0]
    if not able or not conversation.asked:
        return
    best, *others = able
    also = [
        tool for tool in others
        if any(own[tool.name][word] >= _NAME and spread[word] == 1 for word in votes[tool.name].keys() & exact)
        and votes[tool.name].keys() & votes[best.name].keys() & exact and fits[tool.name] >= 0
    ]  # fmt: skip
    yield [tool for tool in tools if tool is best or tool in also]
    takes = {each.name for each in parameters_of(best.parameters) if each.required}
    rest = [
        tool
        for tool in others
        if takes != {each.name for each in parameters_of(tool.parameters) if each.required}
        or not takes
        or _LISTS & set(split_identifier(tool.name))
    ]
    yield from ([tool] for tool in rest[:2] if tool not in also and fits[tool.name] >= 0)


_OVER_ALL = re.compile(
    r"\bhow many\b|\bnumber of \w+s\b|\b(?:total|sum|average|mean|all|list|most|least|first|last|latest|\w{2,}est)\b",
    re.IGNORECASE,
)
"""What is asked of all things of a kind."""
_ASKING = lexicon("what which who whom whose when where why how is are was were can do does did will should has have")
_WANTING = stems(
    "which who describe list find show explain look read calculate convert compare need want add translate"
)


def _weights(tool: ChatTool) -> dict[str, float]:
    first, *rest = sentences(tool.description) or [""]
    parameters = " ".join(f"{' '.join(each.words)} {each.about}" for each in parameters_of(tool.parameters))
    options = " ".join(str(option) for each in parameters_of(tool.parameters) for option in each.options)
    found = dict.fromkeys(stems(" ".join(rest)) | stems(parameters), _DETAIL) | dict.fromkeys(stems(options), _SUMMARY)
    found |= dict.fromkeys(stems(" ".join(" ".join(each.words) for each in parameters_of(tool.parameters))), _PARAMETER)
    return (
        found
        | dict.fromkeys(stems(first), _SUMMARY)
        | dict.fromkeys(stems(" ".join(split_identifier(tool.name))), _NAME)
    )


def _fitness(tool: ChatTool, tools: Sequence[ChatTool], conversation: Conversation) -> float:
    """Tell how well what was said fills a tool's parameters; less than 0 if something is missing that no tool finds."""
    filled = fill(tool, conversation)
    words = set(split_identifier(tool.name))
    raw = set(conversation.question.lower().replace("?", "").split())
    bonus = 0.4 * bool(words & {word for word in raw if word.endswith("s")}) + 0.5 * bool(filled.extra)
    bonus += 0.7 * bool(words & _LISTS and _OVER_ALL.search(conversation.question))
    if filled.missing:
        findable = finders(tool, filled.missing, tools, conversation)
        wants_sql = any(each.kind == "sql" for each in parameters_of(tool.parameters))
        return bonus + (1.7 * wants_sql if findable else -0.6)
    files = [
        re.search(r"\.\w+$", str(filled.arguments[each.name])) is not None
        for each in parameters_of(tool.parameters)
        if each.required and each.kind == "path" and each.name in filled.arguments
    ]
    folders = words & {"directory", "folder", "dir", "directories", "search", "list", "tree"}
    bonus += 0.6 * filled.used - 0.3 * bool(words & _ASIDE - raw)
    return bonus + min(filled.strength, 6.0) / 3 - (0.8 if any(each == bool(folders) for each in files) else 0.0)


def _pursued(tool: ChatTool, tools: Sequence[ChatTool], conversation: Conversation, depth: int = 0) -> _Aim:
    """Return what a tool needs next: its calls, other arguments after errors, or the call that finds what it takes."""
    filled = fill(tool, conversation)
    required = [each for each in parameters_of(tool.parameters) if each.required]
    ids = [each.name for each in required if each.kind == "id"]
    weak = bool(ids) and not filled.missing and filled.strength < 2.5
    direct = _Aim(missing=filled.missing) if filled.missing or weak else _tried(tool, filled, conversation)
    if direct.calls or direct.useful or depth > 1:
        return direct
    wanted = (
        filled.missing or ids or [each.name for each in required if each.kind not in ("query", "quote", "expression")]
    )
    for finder in finders(tool, wanted, tools, conversation):
        aim = _pursued(finder, tools, conversation, depth + 1)
        if aim.calls:
            return aim
        again = fill(tool, conversation, found=wanted)
        if aim.useful and not again.missing:
            chained = _tried(tool, again, conversation)
            if chained.calls or chained.useful:
                return chained
    return _tried(tool, filled, conversation) if weak else direct


def _tried(tool: ChatTool, filled: Filled, conversation: Conversation) -> _Aim:
    """Return the next call for each item that a tool is asked for, or the results; an item is tried a few times."""
    made = {(each.call.name, _key(each.call.arguments)): each for each in conversation.outcomes}
    calls: list[ChatCall] = []
    useful: list[Outcome] = []
    for item in several(tool, filled, conversation):
        queue, seen = [item], list[bytes]()
        while queue and len(seen) < _MOST_TRIES + 2 * any(
            each.kind == "query" for each in parameters_of(tool.parameters)
        ):
            given = queue.pop(0)
            if _key(given) in seen:
                continue
            seen.append(_key(given))
            result = made.get((tool.name, _key(given)))
            if result is None:
                calls.append(ChatCall(tool.name, given))
                break
            if result.useful:
                useful.append(result)
                break
            queue = [*corrected(tool, result, filled, conversation), *queue]
    return _Aim(tuple(calls), tuple(useful))


def _key(arguments: object) -> bytes:
    return orjson.dumps(arguments, option=orjson.OPT_SORT_KEYS, default=dict)


def finders(
    tool: ChatTool, wanted: Collection[str], tools: Sequence[ChatTool], conversation: Conversation
) -> list[ChatTool]:
    """Return the tools that may find what a tool takes, the likeliest first: they list or search things of its name."""
    verbs = stems(" ".join(_READS | _HANDLES))
    about = stems(" ".join(" ".join(split_identifier(name)) for name in wanted))
    nouns = (about | stems(" ".join(split_identifier(tool.name)))) - verbs
    scored = []
    sought = [each for each in parameters_of(tool.parameters) if each.name in wanted and each.kind in _FOUND]
    for each in tools if sought else ():
        required = {one.name for one in parameters_of(each.parameters) if one.required}
        if each is tool or changes(each) or required & set(wanted) or fill(each, conversation).missing:
            continue
        words = set(split_identifier(each.name))
        score = (
            2.0 * bool(nouns & stems(" ".join(words))) + bool(nouns & stems(each.description)) + bool(words & _LISTS)
        )
        if score >= 1 and (words & _LISTS or not required or score > 2):
            scored.append((score + 0.5 * (not required), each))
    return [each for _, each in sorted(scored, key=lambda pair: -pair[0])][:3]


def _uncovered(tools: Sequence[ChatTool], conversation: Conversation) -> set[str]:
    """Return what is asked for and in none of the results."""
    good = [each for each in conversation.outcomes if each.useful]
    called = [tool for tool in tools if any(tool.name == each.call.name for each in good)]
    typed = {each.name for tool in called for each in parameters_of(tool.parameters) if each.kind == "query"}
    given = " ".join(shown(value) for each in good for name, value in each.call.arguments.items() if name not in typed)
    described = " ".join(
        " ".join(
            (*split_identifier(tool.name), tool.description, *(each.name for each in parameters_of(tool.parameters)))
        )
        for tool in called
    )
    asked = stems(conversation.question) - FORM - stems(given) - (set() if typed else stems(described))
    known = stems(" ".join(shown(each.data) for each in good))
    return {word for word in asked if not shares_stem(word, known)}


def _opened(tools: Sequence[ChatTool], conversation: Conversation, uncovered: set[str]) -> ChatCall | None:
    """Return the call that opens what was found, if what is asked for is in none of the results."""
    good = [each for each in conversation.outcomes if each.useful]
    made = {(each.call.name, _key(each.call.arguments)) for each in conversation.outcomes}
    before = {str(value) for each in good for value in each.call.arguments.values()}
    ranked = []
    for tool in tools:
        required = [each for each in parameters_of(tool.parameters) if each.required]
        words = set(split_identifier(tool.name))
        if changes(tool) or len(required) != 1 or required[0].kind not in _FOUND or required[0].kind == "sql":
            continue
        values = taken_from_results(required[0], conversation)[:4]
        calls = [ChatCall(tool.name, {required[0].name: value}) for value in values if str(value) not in before]
        calls = [call for call in calls if (call.name, _key(call.arguments)) not in made]
        told = sum(shares_stem(word, set(_weights(tool))) for word in uncovered) + len(words & _READS)
        folder = required[0].kind == "path" and bool(calls) and not re.search(r"\.\w+$", str(values[0]))
        lists = bool(words & {"search", "list", "directory"})
        if calls and (told or folder) and lists == folder and not words & _ASIDE:
            ranked.append((told, calls[0]))
    opened = sum(call.name == each.call.name for _, call in ranked[:1] for each in good)
    return max(ranked, key=lambda pair: pair[0])[1] if ranked and opened < 3 else None
