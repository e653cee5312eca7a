"""The simulated writer of questions: plain calls of tools, and plain questions about what they return.

It stands in for a model that `keval generate` asks. A record becomes questions about its values, a text questions about
a number or a name that is left out of a sentence.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from random import Random
from typing import Any

import attrs

from keval_gateway import ChatRequest, ModelFault
from keval_simulator.schema import conform, properties_of, required_of, resolved, schema_type
from keval_simulator.words import STOP, lexicon, sentences, split_identifier

_TOOLS = re.compile(r"<tools-(?P<code>[0-9a-f]{8})>\n(?P<body>.*?)\n</tools-(?P=code)>", re.DOTALL)
_CALL = (
    r"<(?P<failed>failed_)?call_(?P<number>\d+)-{0}>\n(?P<tool>\S+) (?P<given>\{{.*?\}})\n(?P<text>.*?)\n?</\w+-{0}>"
)
_SECTION = r"<{1}-{0}>\n(.*?)\n</{1}-{0}>"
_AT_ONCE = 8
_EXAMPLE = re.compile(r"['\"`]([^'\"`\s]{2,60})['\"`]")
_PATH = re.compile(r"(?<![\w/])/[\w./-]+\w|(?<=`)\.[\w./-]*(?=`)")
_VALUE = re.compile(r"`[^`\n]+`|(?<![\w.])\d+(?:\.\d+)?(?!\w|\.\d)")
_WORD = re.compile(r"[A-Za-z]{5,}")
_SCALAR = re.compile(r'"(?P<key>\w+)"\s*:\s*(?P<value>"[^"\\]{1,80}"|-?\d+(?:\.\d+)?|true|false)')
_NOBODY = ("Quillfeather", "Brambleforth", "Zanderloo", "Ostrivane", "Mirrenbach")
_TIMES = {"HH:MM": ("09:30", "18:00"), "YYYY-MM-DD": ("2026-01-15", "2026-07-15")}
_ALTERNATIVES = re.compile(r"\b(?:there (?:are|is)|one of|available|valid|choose from)\b:?(.+)", re.IGNORECASE)
_NAME = re.compile(r"[\w./-]*\w")
_QUERY = lexicon("query queries search keyword keywords topic term terms q text subject")
_FEWEST_WORDS = 4
_LONGEST = 200
"""Words and characters of a sentence that a question quotes."""


@attrs.frozen
class _Made:
    """A call that was made, as the request shows it."""

    number: int
    tool: str
    arguments: Mapping[str, Any]
    text: str


@attrs.frozen
class Brief:
    """A request to write calls or questions.

    It has the tools, the calls that were `made` or `failed`, what servers say of themselves (`instructions`), what a
    person says of the tools (`about`), and what was asked.
    """

    tools: Sequence[Mapping[str, Any]]
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
        listed = [json.loads(line) for line in tools["body"].splitlines()]
        return cls(listed, made, failed, instructions, about, asked.splitlines(), schema)


def written(brief: Brief, rng: Random) -> dict[str, Any]:
    """Return what is asked for."""
    properties = properties_of(brief.schema)
    if "calls" in properties:
        return {"calls": [_proposed(*call) for call in _calls(brief, rng)]}
    entry = properties_of(properties["questions"]["items"])
    if "sought" in entry:
        return {"questions": _unanswerable(brief, rng)}
    found = [each for call in brief.made for each in _questions(call, brief) if each["question"] not in brief.asked]
    rng.shuffle(found)
    return {"questions": found[:_AT_ONCE]}


def _proposed(tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {"tool": tool, "arguments": json.dumps(arguments)}


def _calls(brief: Brief, rng: Random) -> list[tuple[str, dict[str, Any]]]:
    """Return calls that were not made yet, of one tool after the other."""
    before = [(call.tool, {**call.arguments}) for call in (*brief.made, *brief.failed)]
    known = [[(tool["name"], given) for given in _arguments(tool, brief, rng)] for tool in brief.tools]
    if not any(known):  # nobody has named a value, so any text will have to do
        known = [[(tool["name"], each) for each in _conforming(tool["parameters"], rng)] for tool in brief.tools]
    turns = [calls[turn] for turn in range(_AT_ONCE * 4) for calls in known if turn < len(calls)]
    return [call for call in turns if call not in before][:_AT_ONCE]


def _conforming(schema: Mapping[str, Any], rng: Random) -> list[Any]:
    """Return a value that a schema allows, if one can be found."""
    try:
        return [conform(schema, lambda path, at: None, rng)]
    except ModelFault:
        return []


def _arguments(tool: Mapping[str, Any], brief: Brief, rng: Random) -> Iterator[dict[str, Any]]:
    """Yield arguments for a tool: its required parameters, with one value after the other that is known for each."""
    parameters = tool["parameters"]
    values: dict[str, list[Any]] = {}
    for name in required_of(parameters):
        schema = resolved(properties_of(parameters).get(name), parameters)
        whole = {**schema, "$defs": parameters.get("$defs", {})}
        is_text = schema_type(schema) == "string"
        values[name] = _values(name, schema, tool, brief) or ([] if is_text else _conforming(whole, rng))
    if not all(values.values()):
        return  # what other tools return may name a value
    for turn in range(max(map(len, values.values()), default=1)):
        yield {name: found[turn % len(found)] for name, found in values.items()}


def _values(name: str, schema: Mapping[str, Any], tool: Mapping[str, Any], brief: Brief) -> list[Any]:
    """Return values for a parameter: those that the schema names, then what results, people and descriptions say."""
    listed = [*schema.get("enum", ()), *schema.get("examples", ())]
    if listed or schema_type(schema) != "string":
        return listed or ([schema["default"]] if "default" in schema else [])
    words, about = frozenset(split_identifier(name)), schema.get("description", "")
    told = "\n".join(call.text for call in brief.made)
    pattern = rf'^{re.escape(name)}: (.+)$|"{re.escape(name)}"\s*:\s*"([^"\\]+)"'
    found = [line or quoted for line, quoted in re.findall(pattern, told, re.MULTILINE)]
    for call in brief.failed:  # whose errors may say what there is
        if call.tool == tool["name"] and name in call.arguments:
            found += [
                each for told in _ALTERNATIVES.findall(call.text) for each in _NAME.findall(told) if each != "and"
            ]
    if words & lexicon("path file folder directory repo repository"):
        found += _PATH.findall(brief.about)
    found += [time for form, times in _TIMES.items() if form in about for time in times] or _EXAMPLE.findall(about)
    if words & _QUERY:
        text = f"{brief.about} {brief.instructions} {told or tool['description']}"
        found += [word for word in _WORD.findall(text) if word.lower() not in STOP][:40:3]
    return list(dict.fromkeys(found))[: _AT_ONCE * 4]


def _questions(call: _Made, brief: Brief) -> Iterator[dict[str, Any]]:
    """Yield questions about the values of a record, or else about sentences of a text."""
    calls = [*[each.number for each in brief.made if _led_to(each, call)][:1], call.number]
    about = ", ".join(str(value) for value in call.arguments.values())
    if call.text.lstrip().startswith(("{", "[")):
        for found in _SCALAR.finditer(call.text):
            label, value = " ".join(split_identifier(found["key"])), found["value"].strip('"')
            question = f"What is the {label} for {about}?" if about else f"What is the {label}?"
            yield {"question": question, "answer": f"The {label} is {value}.", "calls": calls, "evidence": found[0]}
        return
    for sentence in sentences(call.text):
        missing = _VALUE.search(sentence)
        if missing and sentence[0] != "|" and len(sentence.split()) >= _FEWEST_WORDS and len(sentence) <= _LONGEST:
            gap = f"{sentence[: missing.start()]}___{sentence[missing.end() :]}"
            question = f'What is left out in "{gap.strip(" -*#")}"?'
            yield {"question": question, "answer": missing[0], "calls": calls, "evidence": sentence}


def _led_to(earlier: _Made, later: _Made) -> bool:
    """Return whether the arguments of a call are in the result of an earlier one, which was not told them."""
    values = [value for value in later.arguments.values() if isinstance(value, str)]
    known = json.dumps(earlier.arguments)
    return earlier.number < later.number and any(value in earlier.text and value not in known for value in values)


def _unanswerable(brief: Brief, rng: Random) -> list[dict[str, Any]]:
    """Return questions about names that nobody has."""
    found = []
    for name in rng.sample(_NOBODY, len(_NOBODY)):
        call = rng.choice(_calls(attrs.evolve(brief, about=name, made=()), rng) or [("", {})])
        tool = next((tool for tool in brief.tools if tool["name"] == call[0]), {"name": "", "description": "this"})
        topic = " ".join(split_identifier(tool["name"]))
        question = f"What is known about {name} ({topic})?"
        found.append({"question": question, "sought": [name], "calls": [_proposed(*call)] if call[0] else []})
    return found
