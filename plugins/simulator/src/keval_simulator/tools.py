"""Tools: which ones a question needs, what is tried next, and which tool finds what another one takes."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from math import fsum

import attrs
import orjson

from keval_gateway import ChatCall, ChatTool
from keval_simulator.arguments import Filled, fill, several
from keval_simulator.conversation import Conversation, stated_in
from keval_simulator.corrections import UNOPENED, corrected
from keval_simulator.found import HANDLES, taken_from_results
from keval_simulator.parameters import FORM, Parameter, orders, parameters_of, reading
from keval_simulator.results import Outcome, shown
from keval_simulator.schema import schema_type
from keval_simulator.words import alike, lexicon, sentences, shares_stem, split_identifier, stem, stems

_MOST_CALLS = 8
_MOST_TRIES = 3
_NAME, _SUMMARY, _DETAIL = 2.0, 0.8, 0.3
"""The weight of a word of the question that a tool's name, the first sentence or the rest of its description has. It is
shared among the tools that have the word."""
_NEEDED = 0.5
_EXPLICIT = 3.0
"""The strength of arguments from which on a second tool is asked for what the first one has not told."""
_EFFECTS = lexicon("""
    add append apply archive assign backup book cancel checkout clear clone close commit complete copy create delete
    disable drop duplicate edit enable execute export force format generate give import init insert interact kill learn
    load manage mark merge move patch pay post push put record refund register reload remember remove rename replace
    reset restore run save send set start stop store submit terminate toggle update upload write
    """)
_READS = lexicon("""
    analyse analyze ask calculate check compare compute convert count decode describe diff echo encode estimate evaluate
    explain extract fetch find forecast get hash inspect list look lookup parse predict preview query read resolve
    retrieve search show solve summarise summarize translate validate verify view
    """)
_LISTS = lexicon("list search find all lookup query show directory tree index tables log history")
_FOLDERS = lexicon("directory directories folder dir tree list search")
_OPENS = lexicon("open load connect")
_ASIDE = lexicon("info media size metadata multiple stat")
_METADATA = lexicon("author size pages created modified type format owner metadata version encoding")
_TEXT = lexicon("full text content details body complete verbose")
_KEEPS = lexicon("remember preference preferences insight profile learn memorize")
_PERSONAL = lexicon("i me my i'm mine we our")
_ADVICE = lexicon("should could recommend recommendation suggest advice plan good ideas")
_ASKING = lexicon("what which who whom whose when where why how is are was were can do does did will should has have")
_OVER_ALL = re.compile(
    r"\bhow many\b|\bnumber of \w+s\b|\bwhich \w+s (?:are|were|have|do)\b"
    r"|\b(?:total|sum|average|mean|all|list|most|least|first|last|latest|\w{2,}est)\b",
    re.IGNORECASE,
)
"""What is asked of all things of a kind."""
_FOUND = ("id", "name", "path", "url", "sql", "")
"""The kinds of values that one tool's result may name for another."""


@attrs.frozen
class Step:
    """What is done next for a question or a tool: calls, or results that can be used, or what users are asked for."""

    calls: tuple[ChatCall, ...] = ()
    useful: tuple[Outcome, ...] = ()
    missing: tuple[str, ...] = ()


def plan(tools: Sequence[ChatTool], conversation: Conversation, *, careful: bool = True) -> Step:
    """Decide the next step from the results so far.

    It notes what users say of themselves, looks up what is kept of them where they ask for advice (unless it is not
    `careful`), looks the answer up, and opens what a search has found if the answer is not in it.
    """
    if len(conversation.outcomes) >= _MOST_CALLS:
        return Step()
    question = conversation.question
    states = bool(stated_in(question))
    ordered = [] if states else [tool for tool in tools if changes(tool) and permitted([tool], question)]
    keeps = _KEEPS | {"note", "memory"} if states else _KEEPS
    keeping = [tool for tool in tools if keeps & set(_words(tool)) and tool not in ordered]
    named = any(stems(" ".join(_words(tool))) & stems(question) & stems(" ".join(_KEEPS)) for tool in keeping)
    asked = set(re.findall(r"[\w']+", question.lower()))
    aims = [tool for tool in keeping if changes(tool)] if states else []
    if not states and not named and careful and asked & _PERSONAL and asked & _ADVICE:
        aims = [tool for tool in keeping if not changes(tool)]
    if calls := [call for tool in aims for call in _pursued(tool, tools, conversation).calls]:
        return Step(tuple(calls))
    if states and "?" not in question:
        return Step()
    return _looked_up([tool for tool in tools if named or tool not in keeping], conversation)


def _looked_up(tools: Sequence[ChatTool], conversation: Conversation) -> Step:
    ranked = chosen(tools, conversation)
    missing: tuple[str, ...] = ()
    whole = [tool for tool in permitted(tools, "") if not _required(tool) and tool not in ranked]
    listing = [tool for tool in whole if _LISTS & set(_words(tool))]
    for tool in [
        *ranked,
        *((listing[:2] or [tool for tool in whole if _READS & set(_words(tool))][:1]) if ranked else ()),
    ]:
        step = _pursued(tool, tools, conversation)
        if step.calls:
            return step
        if step.useful:
            break
        missing = missing or step.missing
    else:
        return Step(missing=() if conversation.outcomes else missing)
    if uncovered := _uncovered(tools, conversation):
        if call := _in_full(tools, conversation) or _opened(tools, conversation, uncovered):
            return Step((call,))
        for tool in (each for each in ranked if any(shares_stem(word, _weights(each)) for word in uncovered)):
            explicit = fill(tool, conversation).strength >= _EXPLICIT
            if explicit and (calls := _pursued(tool, tools, conversation).calls):
                return Step(calls)
    return Step()


def _words(tool: ChatTool) -> list[str]:
    return split_identifier(tool.name)


def _required(tool: ChatTool) -> list[Parameter]:
    return [each for each in parameters_of(tool) if each.required]


def changes(tool: ChatTool) -> bool:
    """Tell by its name whether a tool changes something; `get_blog_post` only reads, and so does what takes numbers."""
    return _effect(tool) in _EFFECTS


def _effect(tool: ChatTool) -> str | None:
    """Return the verb of a tool that is not known to read: one that changes things, or any that the description has."""
    words = _words(tool)
    kinds = {str(each.schema.get("type")) for each in _required(tool)}
    opening = re.match(r"\w+\b(?! (?:of|for|in|at|on|by|and|or)\b)", tool.description.lower())
    begins = opening[0].removesuffix("s") if opening else ""
    known = next((word for word in [*words, begins] if word in _EFFECTS or word in _READS), None)
    verb = known or next((word for word in words if len(words) > 1 and stem(word) == stem(begins)), None)
    asks = verb in ("execute", "run") and any(each.kind == "sql" for each in _required(tool))
    return None if asks or verb in _READS or (kinds and kinds <= {"number", "integer"}) else verb


def permitted(tools: Sequence[ChatTool], question: str) -> list[ChatTool]:
    """Return the tools that read, that can be told to read, or that a question orders.

    What is not known to read is left out where another tool is; what changes something always is.
    """
    either = [tool for tool in tools if any(reading(each) for each in parameters_of(tool))]
    found = [tool for tool in tools if not (verb := _effect(tool)) or orders(question, verb) or tool in either]
    return found or [tool for tool in tools if not changes(tool)]


def chosen(tools: Sequence[ChatTool], conversation: Conversation) -> list[ChatTool]:
    """Return up to three tools that may answer a question, the likeliest first: by its words, and by what fits them."""
    asked, exact = alike(conversation.topic) - HANDLES, stems(conversation.topic) - HANDLES
    own = {tool.name: _weights(tool) for tool in tools}
    asked |= {"convert"} if any(span.kind == "quantity" for span in conversation.asked) else set()
    spread = {word: sum(word in weights for weights in own.values()) for word in asked}
    shares = {
        name: {word: weights[word] / spread[word] for word in asked & weights.keys()} for name, weights in own.items()
    }
    # Exactly rounded, as the order of a set is another in each process, and would decide between tools that fit alike.
    named = {name: fsum(share for word, share in words.items() if word in exact) for name, words in shares.items()}
    votes = {name: (fsum(words.values()) + named[name]) / 2 for name, words in shares.items()}
    question = conversation.question.lower()
    values = any(span.kind not in ("word", "phrase") for span in conversation.asked)
    asking = values or "?" in question or bool(_ASKING.intersection(question.split()[:1]))
    open_to = [tool for tool in permitted(tools, question) if asking or votes[tool.name]] if conversation.asked else []
    fits = {tool.name: _fitness(tool, tools, conversation) for tool in open_to}
    ranked = sorted(open_to, key=lambda tool: -votes[tool.name] - fits[tool.name])
    able = [tool for tool in ranked if max(votes[tool.name] + fits[tool.name], 2 * named[tool.name]) >= _NEEDED]
    able = able or [tool for tool in ranked if fits[tool.name] >= 0]
    return [*able[:1], *[tool for tool in able[1:] if fits[tool.name] >= 0][:2]]


def _weights(tool: ChatTool) -> dict[str, float]:
    first, *rest = sentences(tool.description) or [""]
    parameters = parameters_of(tool)
    told = " ".join([*rest, *(f"{' '.join(each.words)} {each.about}" for each in parameters)])
    summary = " ".join([first, *(str(option) for each in parameters for option in each.options)])
    return {
        **dict.fromkeys(stems(told), _DETAIL),
        **dict.fromkeys(stems(summary), _SUMMARY),
        **dict.fromkeys(stems(" ".join(_words(tool))), _NAME),
    }


def _fitness(tool: ChatTool, tools: Sequence[ChatTool], conversation: Conversation) -> float:
    """Tell how well what was said fills a tool's parameters; less than 0 if something is missing that no tool finds."""
    filled = fill(tool, conversation)
    bonus = 0.5 * bool(filled.extra) + 0.6 * filled.used
    bonus -= 0.8 * _is_strange(tool, tools, conversation)
    converts = any(span.kind == "quantity" for span in conversation.asked)
    bonus += 0.7 * bool(_LISTS & set(_words(tool)) and _OVER_ALL.search(conversation.question) and not converts)
    said = set(re.findall(r"\w+", conversation.question.lower()))
    asks = any(each.kind == "query" for each in _required(tool))
    bonus -= asks and not converts and "convert" in _words(tool) and not said & {"convert", "in", "to"}
    bonus += bool(_ASIDE & set(_words(tool)) - said) * (0.3 if said & _METADATA else -0.3)
    if filled.missing:
        sql = any(each.kind == "sql" for each in parameters_of(tool))
        finding = finders(tool, filled.missing, tools, conversation)
        opened = bool(finding) and bool(_OPENS & set(_words(finding[0])))
        return bonus + (1.7 if sql else 0.5 * opened if finding else -0.6)
    paths = [filled.arguments[each.name] for each in _required(tool) if each.kind == "path"]
    return bonus + min(filled.strength, 6.0) / 3 - 0.8 * any(not _suits(tool, str(path)) for path in paths)


def _is_strange(tool: ChatTool, tools: Sequence[ChatTool], conversation: Conversation) -> bool:
    """Tell whether a tool takes the name of a thing of which the question has no word, where another one searches."""
    things = [each for each in _required(tool) if each.kind in ("name", "id", "")]
    common = stems(" ".join(set[str].intersection(*(set(_words(each)) for each in tools)))) | stems(" ".join(_READS))
    nouns = stems(" ".join([*_words(tool), *(word for each in things for word in each.words)])) - common - HANDLES
    searches = any(each.kind == "query" for other in tools if other is not tool for each in _required(other))
    return bool(things) and searches and not any(shares_stem(word, alike(conversation.topic)) for word in nouns)


def _suits(tool: ChatTool, path: str) -> bool:
    """Tell whether a tool that lists is given a folder, or another one a file."""
    return bool(_FOLDERS & set(_words(tool))) != bool(re.search(r"\.\w+$", path))


def _pursued(tool: ChatTool, tools: Sequence[ChatTool], conversation: Conversation, depth: int = 0) -> Step:
    """Return what a tool needs next: its calls, other arguments after errors, or the call that finds what it takes."""
    filled = fill(tool, conversation)
    ids = tuple(each.name for each in _required(tool) if each.kind == "id")
    weak = bool(ids) and not filled.missing and filled.strength < 2.5
    direct = Step(missing=filled.missing) if filled.missing or weak else _tried(tool, filled, conversation)
    if any(each.call.name == tool.name and UNOPENED.search(each.error or "") for each in _since_opened(conversation)):
        opening = [each for each in _openers(tools) if each is not tool and depth < 2]
        direct = next((step for each in opening if (step := _pursued(each, tools, conversation, 2)).calls), direct)
    if direct.calls or direct.useful or depth > 1:
        return direct
    typed = ("query", "quote", "expression")
    wanted = filled.missing or ids or [each.name for each in _required(tool) if each.kind not in typed]
    finding = finders(tool, wanted, tools, conversation)
    if not finding and any(each.kind == "sql" for each in _required(tool)):
        return _tried(tool, fill(tool, conversation, found=wanted), conversation)
    for finder in finding:
        step = _pursued(finder, tools, conversation, depth + 1)
        if step.calls:
            return step
        again = fill(tool, conversation, found=wanted)
        paths = [str(again.arguments.get(each.name)) for each in _required(tool) if each.kind == "path"]
        if step.useful and not again.missing and all(_suits(tool, path) for path in paths):
            chained = _tried(tool, again, conversation)
            if chained.calls or chained.useful:
                return chained
    return _tried(tool, filled, conversation) if weak else direct


def _tried(tool: ChatTool, filled: Filled, conversation: Conversation) -> Step:
    """Return the next call for each item that a tool is asked for, or the results; an item is tried a few times."""
    made = {_key(each.call): each for each in _since_opened(conversation)}
    tries = _MOST_TRIES + 2 * any(each.kind == "query" for each in parameters_of(tool))
    calls: list[ChatCall] = []
    useful: list[Outcome] = []
    for item in several(tool, filled, conversation):
        queue, seen = [item], list[bytes]()
        while queue and len(seen) < tries:
            call = ChatCall(tool.name, queue.pop(0))
            if _key(call) in seen:
                continue
            seen.append(_key(call))
            result = made.get(_key(call))
            if result is None:
                calls.append(call)
                break
            if result.useful:
                useful.append(result)
                break
            queue = [*corrected(tool, result, filled, conversation), *queue]
    return Step(tuple(calls), tuple(useful))


def _since_opened(conversation: Conversation) -> Sequence[Outcome]:
    """Return the outcomes without the errors that said that nothing is open, if something has been opened since."""
    outcomes = conversation.outcomes
    opened = [at for at, e in enumerate(outcomes) if e.useful and _OPENS & set(split_identifier(e.call.name))]
    last = opened[-1] if opened else 0
    return [e for at, e in enumerate(outcomes) if at >= last or not UNOPENED.search(e.error or "")]


def _key(call: ChatCall) -> bytes:
    return orjson.dumps([call.name, call.arguments], option=orjson.OPT_SORT_KEYS, default=dict)


def finders(
    tool: ChatTool, wanted: Collection[str], tools: Sequence[ChatTool], conversation: Conversation
) -> list[ChatTool]:
    """Return the tools that may find what a tool takes, the likeliest first: they list or search things of its name."""
    about = " ".join([*(" ".join(split_identifier(name)) for name in wanted), *_words(tool)])
    nouns = stems(about) - stems(" ".join(_READS)) - HANDLES
    if not any(each.name in wanted and each.kind in _FOUND for each in parameters_of(tool)):
        return []
    scored = []
    for each in [*permitted(tools, ""), *_openers(tools)]:
        required = {one.name for one in _required(each)}
        score = 2.0 * bool(nouns & stems(" ".join(_words(each)))) + bool(_LISTS & set(_words(each)))
        score = 4.0 if _OPENS & set(_words(each)) else score
        if each is not tool and score and not required & set(wanted) and not fill(each, conversation).missing:
            scored.append((score + 0.5 * (not required), each))
    return [each for _, each in sorted(scored, key=lambda pair: -pair[0])][:3]


def _openers(tools: Sequence[ChatTool]) -> list[ChatTool]:
    """Return the tools that open what a path or an address leads to, for others to work with."""
    opening = [tool for tool in tools if _OPENS & set(_words(tool)) and tool not in permitted(tools, "")]
    return [tool for tool in opening if {each.kind for each in _required(tool)} in ({"path"}, {"url"})]


def _uncovered(tools: Sequence[ChatTool], conversation: Conversation) -> set[str]:
    """Return what is asked for and in none of the results."""
    good = [each for each in conversation.outcomes if each.useful]
    called = [tool for tool in tools if any(tool.name == each.call.name for each in good)]
    typed = {each.name for tool in called for each in parameters_of(tool) if each.kind == "query"}
    given = " ".join(shown(value) for each in good for name, value in each.call.arguments.items() if name not in typed)
    own = {word for tool in called for word, weight in _weights(tool).items() if weight > _DETAIL}
    others = stems(" ".join(word for tool in tools if tool not in called for word in _words(tool)))
    described = set[str]() if typed else {word for tool in called for word in _weights(tool)} - (others - own)
    known = stems(" ".join(shown(each.data) for each in good))
    return {
        word for word in stems(conversation.question) - FORM - stems(given) - described if not shares_stem(word, known)
    }


def _in_full(tools: Sequence[ChatTool], conversation: Conversation) -> ChatCall | None:
    """Return a call once more that leaves out no text, if an optional flag says so."""
    made = {_key(each.call) for each in conversation.outcomes}
    good = [each for each in conversation.outcomes if each.useful]
    for tool, outcome in ((tool, each) for tool in tools for each in good if each.call.name == tool.name):
        optional = [each for each in parameters_of(tool) if each.name not in outcome.call.arguments]
        flags = [each.name for each in optional if schema_type(each.schema) == "boolean" and _TEXT & set(each.words)]
        call = ChatCall(tool.name, {**outcome.call.arguments, **dict.fromkeys(flags, True)})
        if flags and _key(call) not in made:
            return call
    return None


def _opened(tools: Sequence[ChatTool], conversation: Conversation, uncovered: set[str]) -> ChatCall | None:
    """Return the call that opens what was found, if what is asked for is in none of the results."""
    good = [each for each in conversation.outcomes if each.useful]
    made = {_key(each.call) for each in conversation.outcomes}
    searched = {one.name for tool in tools for one in parameters_of(tool) if one.kind == "query"}
    before = {str(value) for each in good for name, value in each.call.arguments.items() if name not in searched}
    ranked: list[tuple[int, ChatCall]] = []
    wide = uncovered | (alike(conversation.question) - stems(conversation.question))
    opening = any(_OPENS & set(split_identifier(each.call.name)) for each in good)
    for tool in permitted(tools, ""):
        required = _required(tool)
        if opening and not required:  # it may say of which thing that was opened it is to tell
            required = [each for each in parameters_of(tool) if each.kind == "id"]
        others = [each.call for each in good if each.call.name != tool.name]
        shared = {name: value for call in others for name, value in call.arguments.items()}
        given = {one.name: shared[one.name] for one in required if one.name in shared and len(required) > 1}
        required = [one for one in required if one.name not in given]
        if len(required) != 1 or required[0].kind not in _FOUND:
            continue
        name, asks = required[0].name, required[0].kind == "sql"
        tables = fill(tool, conversation, found=[name]).others[name] if asks else ()
        values = [each for each in tables if each.startswith("SELECT * ")]
        told_by = [each for each in good if each.call.name != tool.name or required[0].kind in ("path", "url")]
        known = attrs.evolve(conversation, outcomes=tuple(told_by))
        values = values if asks else taken_from_results(required[0], known)[:4]
        own = {word for word, weight in _weights(tool).items() if weight == _NAME}
        anew = any(shares_stem(word, own) for word in uncovered)
        calls = [ChatCall(tool.name, {**given, name: each}) for each in values if anew or str(each) not in before]
        calls = [call for call in calls if _key(call) not in made]
        told = sum(shares_stem(word, _weights(tool)) for word in wide) + bool(_READS & set(_words(tool)))
        told += (opening and bool(_TEXT & set(_words(tool)))) - bool(_ASIDE & set(_words(tool)))
        told += 2 * asks
        told += 2 * (required[0].kind == "path" and bool(calls) and _suits(tool, str(values[0])))
        if calls and told > 0:
            ranked.append((told, calls[0]))
    opened = sum(call.name == each.call.name for _, call in ranked[:1] for each in good)
    return max(ranked, key=lambda pair: pair[0])[1] if ranked and opened < 3 else None
