"""The simulated writer of questions: plain calls of tools, and plain questions about what they return.

It stands in for a model that `keval generate` asks. Tools are called as an agent calls them. A record becomes questions
about its values, a list one about what is in it, and a text questions about a number or a name that is left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any

import attrs

from keval_gateway import ChatCall, ChatMessage, ChatRequest, ChatTool, ModelFault
from keval_simulator.arguments import fill
from keval_simulator.conversation import Conversation
from keval_simulator.corrections import offered
from keval_simulator.found import taken_from_results
from keval_simulator.parameters import Parameter, parameters_of
from keval_simulator.results import Outcome, label, lines_of, outcome, records
from keval_simulator.schema import conform, properties_of, schema_type
from keval_simulator.tools import changes
from keval_simulator.words import STOP, sentences, split_identifier

_TOOLS = re.compile(r"<tools-(?P<code>[0-9a-f]{8})>\n(?P<body>.*?)\n</tools-(?P=code)>", re.DOTALL)
_CALL = (
    r"<(?P<failed>failed_)?call_(?P<number>\d+)-{0}>\n(?P<tool>\S+) (?P<given>\{{.*?\}})\n(?P<text>.*?)\n?</\w+-{0}>"
)
_SECTION = r"<{1}-{0}>\n(.*?)\n</{1}-{0}>"
_AT_ONCE = 8
_VALUE = re.compile(r"`[^`\n]+`|(?<![\w.])\d+(?:\.\d+)?(?!\w|\.\d)")
_PAIR = re.compile(r"([A-Za-z][\w ]{1,30}):\s+(\S.{0,80})")
_WORD = re.compile(r"[A-Za-z]{5,}")
_NOBODY = ("Quillfeather", "Brambleforth", "Zanderloo", "Ostrivane", "Mirrenbach")
_SAMPLES: Mapping[str, Sequence[Any]] = {
    "zone": ("Asia/Tokyo", "UTC"),
    "date": ("2026-01-15", "2026-07-15"),
    "quote": ("low tide", "green light"),
}
"""What is given to parameters of these kinds where nobody has named a value."""
_OF_PEOPLE = ("path", "url", "email", "date", "time", "id", "sql")
"""Kinds of values that are taken from what a person says of the tools, before anything else."""
_FEWEST_WORDS = 4
_LONGEST = 200
"""Words and characters of a sentence that a question quotes."""
_LONGEST_VALUE = 80
_MOST_LISTED = 12


@attrs.frozen
class _Made:
    """A call that was made, as the request shows it."""

    number: int
    tool: str
    arguments: Mapping[str, Any]
    text: str

    @property
    def outcome(self) -> Outcome:
        """What an agent reads of it."""
        return outcome(ChatCall(self.tool, self.arguments), ChatMessage("tool", self.text))


@attrs.frozen
class Brief:
    """A request to write calls or questions.

    It has the tools, the calls that were `made` or `failed`, what servers say of themselves (`instructions`), what a
    person says of the tools (`about`), and what was asked.
    """

    tools: Sequence[ChatTool]
    made: Sequence[_Made]
    failed: Sequence[_Made]
    instructions: str
    about: str
    asked: Sequence[str]
    schema: Mapping[str, Any]

    @classmethod
    def of(cls, request: ChatRequest, schema: Mapping[str, Any]) -> Brief | None:
        """Read a request for a reply of a schema; `None` if it is another one."""
        message = request.messages[-1].text if request.messages else ""
        tools = _TOOLS.search(message)
        if tools is None:
            return None
        made: list[_Made] = []
        failed: list[_Made] = []
        for found in re.finditer(_CALL.format(tools["code"]), message, re.DOTALL):
            call = _Made(int(found["number"]), found["tool"], json.loads(found["given"]), found["text"])
            (failed if found["failed"] else made).append(call)
        instructions, about, asked = (
            "".join(re.findall(_SECTION.format(tools["code"], name), message, re.DOTALL))
            for name in ("server_instructions", "about", "asked_already")
        )
        listed = [ChatTool(**json.loads(line)) for line in tools["body"].splitlines()]
        return cls(listed, made, failed, instructions, about, asked.splitlines(), schema)

    @property
    def conversation(self) -> Conversation:
        """What the calls so far have found for somebody who asks about what a person said."""
        found = tuple(each.outcome for each in self.made)
        return Conversation(self.about, self.about, (), found, {}, (), self.instructions)


def written(brief: Brief, rng: Random) -> dict[str, Any]:
    """Return what is asked for."""
    properties = properties_of(brief.schema)
    if "calls" in properties:
        return {"calls": [_proposed(*call) for call in _calls(brief, rng)]}
    entry = properties_of(properties["questions"]["items"])
    if "near_miss" in entry:
        return {"questions": _routing(entry["target"]["enum"], brief)}
    if "sought" in entry:
        return {"questions": _unanswerable(brief, rng)}
    useful = [call for call in brief.made if call.outcome.useful]
    found = [each for call in useful for each in _questions(call, brief) if each["question"] not in brief.asked]
    rng.shuffle(found)
    return {"questions": found[:_AT_ONCE]}


def _proposed(tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {"tool": tool, "arguments": json.dumps(arguments)}


def _calls(brief: Brief, rng: Random) -> list[tuple[str, dict[str, Any]]]:
    """Return calls that were not made yet, of one tool after the other; those that failed before come last."""
    before = [(call.tool, {**call.arguments}) for call in (*brief.made, *brief.failed)]
    failed = [call.tool for call in brief.failed]
    reading = sorted((tool for tool in brief.tools if not changes(tool)), key=lambda tool: failed.count(tool.name))
    known = [[(tool.name, given) for given in _arguments(tool, brief, rng)] for tool in reading]
    if brief.made or not any(known):  # where nobody has named a value, any will have to do, and errors may name others
        guesses = [[(tool.name, given) for given in _conforming(tool.parameters, rng)[:1]] for tool in reading]
        known = [found or guess for found, guess in zip(known, guesses, strict=True)]
    turns = [calls[turn] for turn in range(_AT_ONCE * 4) for calls in known if turn < len(calls)]
    return [call for call in turns if call not in before][:_AT_ONCE]


def _arguments(tool: ChatTool, brief: Brief, rng: Random) -> Iterator[dict[str, Any]]:
    """Yield arguments for a tool: its required parameters, with one value after the other that is known for each."""
    filled = fill(tool, brief.conversation)
    values: dict[str, list[Any]] = {}
    for each in parameters_of(tool):
        if each.required:
            said = [given for name, given in filled.arguments.items() if name == each.name]
            values[each.name] = _values(each, [*said, *filled.others.get(each.name, ())], tool, brief, rng)
    if not all(values.values()):
        return  # what other tools return may name a value
    for turn in range(min(_AT_ONCE * 4, max(map(len, values.values()), default=1))):
        yield {name: found[(turn + at) % len(found)] for at, (name, found) in enumerate(values.items())}


def _values(parameter: Parameter, about: Sequence[Any], tool: ChatTool, brief: Brief, rng: Random) -> list[Any]:
    """Return values for a parameter: its options, or what errors, people, results and descriptions name."""
    schema, found = parameter.schema, brief.conversation
    match schema_type(schema):
        case _ if parameter.options:
            return [*parameter.options]
        case "array" if schema_type(schema.get("items") or {}) == "string":
            one = attrs.evolve(parameter, name=parameter.name.removesuffix("s"), schema=schema["items"])
            return [[each] for each in taken_from_results(one, found)] or [*about]
        case "string":
            pass
        case _:
            return [*about] or _conforming({**schema, "$defs": tool.parameters.get("$defs", {})}, rng)
    errors = [call.text for call in brief.failed if call.tool == tool.name and parameter.name in call.arguments]
    values = [each for text in errors for each in offered(text)]
    values += about if parameter.kind in _OF_PEOPLE else ()
    if parameter.kind == "query":
        told = "\n".join(call.text for call in brief.made) or tool.description
        words = _WORD.findall(f"{brief.about} {brief.instructions} {told}")
        values += taken_from_results(Parameter("name", {"type": "string"}, required=True), found)[:_AT_ONCE]
        values += [word for word in words if word.lower() not in STOP][:40:3]
    values += [*taken_from_results(parameter, found), *(each.strip("'\"`") for each in parameter.examples)]
    if parameter.kind == "expression":
        values += [f"{rng.randint(2, 99)} * ({rng.randint(2, 99)} + {rng.randint(2, 99)})" for _ in range(_AT_ONCE)]
    return list(dict.fromkeys(values or _SAMPLES.get(parameter.kind, about)))


def _conforming(schema: Mapping[str, Any], rng: Random) -> list[Any]:
    """Return values that a schema allows, if any can be found."""
    try:
        found = [conform(schema, lambda path, at: None, rng) for _ in range(3)]
    except ModelFault:
        return []
    return [schema["default"]] if "default" in schema else [e for at, e in enumerate(found) if e not in found[:at]]


def _questions(call: _Made, brief: Brief) -> Iterator[dict[str, Any]]:
    """Yield questions about the values of records, what a list has, lines with a name, or sentences."""
    calls = [*[each.number for each in brief.made if _led_to(each, call)][:1], call.number]
    for question, answer, evidence in _asked(call):
        if evidence:
            yield {"question": question, "answer": answer, "calls": calls, "evidence": evidence}


def _asked(call: _Made) -> Iterator[tuple[str, str, str]]:
    about = ", ".join(str(value) for value in call.arguments.values())
    beside = f" for {about}" if about else ""
    topic = " ".join(split_identifier(call.tool))
    data = call.outcome.data
    head, rows = records(data)
    if rows and all(len(row) == 1 for row in rows) and 1 < len(rows) <= _MOST_LISTED:
        names = [str(value) for row in rows for value in row.values()]
        yield f"What are all the results of {topic}{beside}?", ", ".join(names), _passage(call.text, *names)
        return
    for row in [*([head] if head else []), *rows]:
        texts = [key for key, value in row.items() if isinstance(value, str) and _is_short(value)]
        # Records are told apart by words that no other one has, rather than by a hash.
        own = [key for key in texts if sum(other.get(key) == row[key] for other in rows) < 2]
        by = next(iter([*(key for key in own if not re.search(r"\d", row[key])), *own, *texts]), None)
        whose = beside if by is None or len(rows) <= 1 else f" of {row[by]}{beside}"
        for key, value in row.items():
            if isinstance(value, list) and value and all(isinstance(each, str) and _is_short(each) for each in value):
                yield f"What are the {label(key)}{whose}?", ", ".join(value), _passage(call.text, *value)
            if (key != by or len(rows) <= 1) and _is_short(value):
                said = json.dumps(value).strip('"') if isinstance(value, bool) else str(value)
                pair = _passage(call.text, *key.split()[-1:], said, gap=r"\W{1,6}?")
                evidence = pair or _passage(call.text, *([row[by]] if by is not None else []), said)
                yield f"What is the {label(key) or topic}{whose}?", f"The {label(key) or topic} is {said}.", evidence
    if head or rows:
        return
    if about and len(call.text) <= _LONGEST_VALUE and "\n" not in call.text:
        yield f"{topic.capitalize()}{beside}: what is the result?", call.text, call.text
    for line in lines_of(data):
        if named := _PAIR.fullmatch(line):
            yield f"What is the {named[1].lower()}{beside}?", named[2], line
    for sentence in sentences(call.text):
        missing = _VALUE.search(sentence)
        if missing and sentence[0] != "|" and len(sentence.split()) >= _FEWEST_WORDS and len(sentence) <= _LONGEST:
            gap = f"{sentence[: missing.start()]}___{sentence[missing.end() :]}"
            yield f'What is left out in "{gap.strip(" -*#")}"?', missing[0], sentence


def _passage(text: str, *values: str, gap: str = r"\W.{0,40}?") -> str:
    """Return the passage of a result that has values one after the other; empty if there is none."""
    match = re.search(rf"{gap.join(map(re.escape, values))}(?!\w)", text, re.DOTALL)
    return match[0] if match else ""


def _is_short(value: Any) -> bool:
    return isinstance(value, str | int | float) and 0 < len(str(value)) <= _LONGEST_VALUE and "\n" not in str(value)


def _led_to(earlier: _Made, later: _Made) -> bool:
    """Return whether the arguments of a call are in the result of an earlier one, which was not told them."""
    values = [value for value in later.arguments.values() if isinstance(value, str)]
    known = json.dumps(earlier.arguments)
    return earlier.number < later.number and any(value in earlier.text and value not in known for value in values)


def _routing(targets: Sequence[str], brief: Brief) -> list[dict[str, Any]]:
    """Return a plain task and a plain near-miss for each skill or tool, with a name to tell it from those before."""
    name = _NOBODY[len(brief.asked) // 2 % len(_NOBODY)]
    asked = ((False, "Do the {} for {}, please."), (True, "Who wrote a novel named The {}, if not {}?"))
    return [
        {"question": told.format(" ".join(split_identifier(each)), name), "target": each, "near_miss": near}
        for each in targets
        for near, told in asked
    ]


def _unanswerable(brief: Brief, rng: Random) -> list[dict[str, Any]]:
    """Return questions about names that nobody has."""
    found = []
    for name in rng.sample(_NOBODY, len(_NOBODY)):
        call = rng.choice(_calls(attrs.evolve(brief, about=name, made=()), rng) or [("", {})])
        topic = " ".join(split_identifier(call[0]))
        question = f"What is known about {name} ({topic})?"
        found.append({"question": question, "sought": [name], "calls": [_proposed(*call)] if call[0] else []})
    return found
