"""The format of promptfoo: prompts × providers × tests, with what each test asserts, in keval's words.

Sources: promptfoo's documentation, Configuration reference, Prompts, Providers, Test cases, Assertions & metrics.
"""

from __future__ import annotations

import csv
import glob
import itertools
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import orjson
import yaml

from keval.config.source import KeyPath, Source
from keval.errors import ConfigError, FieldError, Problem
from keval.files import DAMAGE, read_input
from keval.seams import registry
from keval.seams.formats import Translation
from keval.seams.infrastructure import DatasetRequest, RawRecord
from keval_formats import asserts, openai_evals
from keval_formats.placeholders import as_template, filled, text_of

_MODEL = "simulated/model"
_GRADED = {
    **dict.fromkeys(("llm-rubric", "g-eval"), "{}"),
    "model-graded-closedqa": "The response meets this criterion: {}",
    **dict.fromkeys(("factuality", "model-graded-factuality"), "The response contradicts nothing of this: {}"),
}
"""Assertions that a model decides, and the expectations that they become."""
_CODE = ("javascript", "python", "ruby", "webhook")
_CODE_SUFFIXES = "[cm]?js|ts|py|rb"
_TRANSFORMS = ("transform", "postprocess", "transformVars", "transformResponse", "assertScoringFunction")
_VENDORS = {"vertex": "vertex_ai", "azureopenai": "azure", "togetherai": "together_ai"}
_TOKENS = ("max_tokens", "max_completion_tokens", "max_output_tokens")
_EXECUTION = {"repeat": "num_repetitions", "maxConcurrency": "max_concurrent"}
_TOP = ("description", "prompts", "providers", "targets", "tests", "scenarios", "defaultTest", "evaluateOptions")
_TEST = ("vars", "assert", "description", "threshold", "metadata", "options", "item")
_OPTIONS = ("prefix", "suffix", "disableDefaultAsserts")
_ASSERT = ("type", "value", "threshold", "weight", "metric")

_Prompt: TypeAlias = tuple[str, str, tuple[tuple[str, str], ...]]
"""A label, the system prompt, and the roles and texts of other messages."""


class Suites:
    """The formats of promptfoo and of OpenAI Evals."""

    def translate(self, data: dict[str, Any], path: Path) -> Translation | None:
        """Make an agent of each provider, a condition of each prompt, and samples of the tests."""
        keys = data.keys()
        if {"agents", "conditions", "dataset"} & keys or not {"providers", "targets", "testing_criteria"} & keys:
            return None
        try:
            return _Suite(data, path).translation()
        except (OSError, *DAMAGE) as error:
            raise ConfigError([Problem(str(path), _told(error))]) from error

    def extend_schema(self, properties: dict[str, Any]) -> None:
        """Add nothing: a config in keval's own words has no key of these formats."""


suites = Suites()


class Tests:
    """The tests of a promptfoo config, or the rows of an export of OpenAI Evals."""

    def read(self, request: DatasetRequest) -> Iterator[RawRecord | Problem]:
        """Yield a record for each test with each combination of its variables, or what is wrong with the test."""
        source = Source.read(request.path)
        suite = _Suite(source.data, request.path)
        for path, found in suite.records():
            place = source.place(suite.place(path))
            yield Problem(place, found) if isinstance(found, str) else RawRecord(found, int(place.split(":")[-2]))


class _Suite:
    """A config, with what is wrong with it, and what is `unmatched`, as nothing in keval is equivalent.

    `systems` are the system prompts by condition, and `asked` the prompts without them: one, or several that differ.
    """

    def __init__(self, data: Mapping[str, Any], file: Path) -> None:
        self.file, self.data = file, data
        self.written: Mapping[KeyPath, KeyPath] = {}
        self.problems: list[FieldError] = []
        self.unmatched: list[FieldError] = []
        if "testing_criteria" in data:
            self.written = openai_evals.WRITTEN
            self.data, parts = openai_evals.as_promptfoo(data, file)
            for part in parts:
                self._tell(*part)
        self._tell(self.data, (), _TOP)
        self.options = _mapping(self.data, "evaluateOptions")
        self._tell(self.options, ("evaluateOptions",), tuple(_EXECUTION))
        default = self.data.get("defaultTest") or {}
        self.default = default if isinstance(default, dict) else next(iter(_rows(self._files(default)[0])), {})
        self.systems, self.asked = self._prompts()

    def place(self, path: KeyPath) -> KeyPath:
        """Return the path of a part in the user's file, of rows of other files that of the file's name."""
        path = (*itertools.takewhile(lambda part: not str(part).startswith("row "), path),)
        return next(((*new, *path[len(old) :]) for old, new in self.written.items() if path[: len(old)] == old), path)

    def translation(self) -> Translation:
        """Return an evaluation, whose dataset is the file itself."""
        samples = [record for _, record in self.records() if isinstance(record, dict)]
        parts = {key for record in samples for key in record["metadata"]}
        agents, contexts, moves = self._agents()
        judged = "expectations" in parts
        told = f"agent and model are openai and {_MODEL}, which only shows how all works, unless flags name others"
        return Translation(
            _given(
                name=self.file.stem,
                description=self.data.get("description"),
                dataset={"path": self.file.name, "type": "suite"},
                agents=agents or {"openai": {"model": _MODEL}},
                contexts=contexts,
                conditions={
                    label: _given(system_prompt=text, contexts=[*contexts]) for label, text in self.systems.items()
                },
                judges=judged and {"judge": {"model": self._grader(agents)}},
                rubrics=judged and ["expectations"],
                # Without any assertion, answers are there to be read.
                metrics=["formats/asserts"] if "asserts" in parts else not judged and ["basic/latency"],
                execution={ours: self.options[key] for key, ours in _EXECUTION.items() if key in self.options},
            ),
            moves={self.place(old): new for old, new in moves.items()},
            problems=self._placed(self.problems),
            notices=() if agents else (FieldError((), f"{told}: --agent, -m"),),
            unmatched=self._placed(self.unmatched),
        )

    def _placed(self, errors: list[FieldError]) -> tuple[FieldError, ...]:
        return tuple(dict.fromkeys(each._replace(path=self.place(each.path)) for each in errors))

    def _tell(self, part: Mapping[str, Any], path: KeyPath, known: tuple[str, ...]) -> None:
        """Tell the keys that are not known. One that changes an answer before it is checked is an error."""
        for key in part:
            if key in _TRANSFORMS:
                told = f"{key!r} is code, which is not run, and assertions are about what it returns; take it out"
                self.problems.append(FieldError((*path, key), told, at_key=True))
            elif key not in known and not key.startswith("$"):
                self.unmatched.append(FieldError((*path, key), f"the key {key!r}", at_key=True))

    def _agents(self) -> tuple[dict[str, Any], dict[str, Any], dict[KeyPath, KeyPath]]:
        """Return agents, contexts of their MCP servers, and where agents stood."""
        agents: dict[str, Any] = {}
        contexts: dict[str, Any] = {}
        moves: dict[KeyPath, KeyPath] = {}
        for path, given in _items(self.data, "targets" if "targets" in self.data else "providers"):
            entry = given if isinstance(given, dict) else {"id": given}
            if "id" not in entry:
                entry = next(({"id": name, **(options or {})} for name, options in entry.items()), {})
            self._tell(entry, path, ("id", "label", "config"))
            if (agent := _agent(entry)) is None:
                self.unmatched.append(FieldError(path, f"the provider {entry.get('id')!r}"))
                continue
            label = _label(entry.get("label") or entry["id"], agents)
            agents[label], moves[path] = agent, ("agents", label)
            config, at = _mapping(entry, "config"), (*path, "config")
            mcp = _mapping(config, "mcp")
            self._tell(config, at, ("temperature", "mcp", *_TOKENS))
            self._tell(mcp, (*at, "mcp"), ("enabled", "server", "servers"))
            for server in [*filter(None, [mcp.get("server")]), *mcp.get("servers", ())] if mcp.get("enabled") else ():
                kind, keys = ("http", ("url", "headers")) if "url" in server else ("stdio", ("command", "args", "env"))
                self._tell(server, (*at, "mcp"), ("name", *keys))
                options = {"type": kind, **{key: server[key] for key in keys if key in server}}
                ours = any((self.file.parent / str(each)).exists() for each in options.get("args") or ())
                text = orjson.dumps({**options, **({"cwd": "."} if ours else {})}).decode()
                context = orjson.loads(re.sub(r"\{\{\s*env\.(\w+)\s*\}\}", r"${\1}", text))
                if context not in contexts.values():
                    contexts[_label(server.get("name") or "mcp", contexts)] = context
        return agents, contexts, moves

    def _grader(self, agents: Mapping[str, Any]) -> str:
        """Return the model of the judge: the grader's that the config names, or else the first agent's."""
        given = _mapping(self.default, "options").get("provider")
        agent = _agent(given if isinstance(given, dict) else {"id": given})
        if given and not agent:
            self.unmatched.append(FieldError(("defaultTest", "options", "provider"), f"the provider {given!r:.100}"))
        return str((agent or next(iter(agents.values()), {})).get("model", _MODEL))

    def _prompts(self) -> tuple[dict[str, str], list[_Prompt]]:
        found: list[_Prompt] = []
        for path, given in _items({"prompts": "{{prompt}}", **self.data}, "prompts"):
            entry = given if isinstance(given, dict) else {"raw": given}
            self._tell(entry, path, ("raw", "id", "label"))
            try:
                for written in self._texts(str(entry.get("raw") or entry.get("id"))):
                    text = re.sub(r"\{\{-?\s*(.*?)\s*-?\}\}", r"{{\1}}", written)
                    as_template(text)  # refuses what is not read
                    messages = _messages(text)
                    system = "\n\n".join(said for role, said in messages if role == "system")
                    label = _label(entry.get("label") or f"prompt_{len(found) + 1}", [name for name, *_ in found])
                    found.append((label, system, tuple(each for each in messages if each[0] != "system")))
            except (ValueError, OSError) as error:
                self.problems.append(FieldError(path, str(error)))
        ends = {"{{" + said[-1][1].rpartition("{{")[2] for *_, said in found}
        if len({said for *_, said in found}) > 1 and len(ends) == 1 and all(len(said) == 1 for *_, said in found):
            told = "prompts that differ before their last placeholder, which becomes the question: as system prompts"
            self.unmatched.append(FieldError(("prompts",), told))
            (end,) = ends
            split = ((label, f"{system}\n\n{said[0][1].removesuffix(end)}") for label, system, said in found)
            found = [(label, system.strip(), (("user", end),)) for label, system in split]
        if len({said for *_, said in found}) > 1:
            told = "prompts that differ in what the user says: each is asked in samples of its own, and not compared"
            self.unmatched.append(FieldError(("prompts",), told))
            return {"prompts": "{{ metadata.system }}"}, found
        return {label: as_template(system, "vars") for label, system, _ in found}, found[:1]

    def records(self) -> Iterator[tuple[KeyPath, dict[str, Any] | str]]:
        """Yield the path of every test with its records, or with what is wrong."""
        tests = [*self._tests()]
        names = Counter(test.get("description") for _, test in tests)
        for path, test in tests:
            try:
                found = [*self._records(path, test)]
            except (OSError, *DAMAGE) as error:
                row = f"{path[-1]}: " if str(path[-1:]).startswith("('row ") else ""
                yield path, f"{row}{_told(error)}"
                continue
            name = test.get("description")
            yield from ((path, _given(id=names[name] == len(found) == 1 and name, **record)) for record in found)

    def _tests(self) -> Iterator[tuple[KeyPath, dict[str, Any]]]:
        if not {"tests", "scenarios"} & self.data.keys():
            yield (), {}
        yield from self._loaded(self.data.get("tests", []), ("tests",))
        for path, scenario in self._loaded(self.data.get("scenarios", []), ("scenarios",)):
            self._tell(scenario, path, ("config", "tests", "description"))
            for _, config in self._loaded(scenario.get("config", []), (*path, "config")):
                for at, test in self._loaded(scenario.get("tests", [{}]), (*path, "tests")):
                    parts = [*config.get("assert", []), *test.get("assert", [])]
                    about = {**_mapping(config, "vars"), **_mapping(test, "vars")}
                    yield at, {**config, **test, "assert": parts, "vars": about}

    def _loaded(self, value: Any, path: KeyPath) -> Iterator[tuple[KeyPath, dict[str, Any]]]:
        """Yield the tests of a list, of a file, or of the files of a pattern."""
        if isinstance(value, list):
            for index, each in enumerate(value):
                yield from self._loaded(each, (*path, index))
        elif isinstance(value, str) and not value.startswith("http"):
            try:
                for file in self._files(value):
                    yield from (((*path, f"row {row}"), test) for row, test in enumerate(_rows(file), start=1))
            except (ValueError, OSError) as error:
                self.problems.append(FieldError(path, str(error)))
        elif isinstance(value, dict) and "path" not in value:
            yield path, value
        else:
            self.unmatched.append(FieldError(path, "tests that code or a service makes"))

    def _records(self, path: KeyPath, test: dict[str, Any]) -> Iterator[dict[str, Any]]:
        for part, at, more in ((self.default, ("defaultTest",), ("provider",)), (test, path, ())):
            self._tell(part, at, _TEST)
            self._tell(_mapping(part, "options"), (*at, "options"), (*_OPTIONS, *more))
        keys = ("options", "vars", "metadata")
        options, given, metadata = ({**_mapping(self.default, key), **_mapping(test, key)} for key in keys)
        both = [(("defaultTest",), self.default), (path, test)][bool(options.get("disableDefaultAsserts")) :]
        parts = [
            ((*at, "assert", index), each) for at, one in both for index, each in enumerate(one.get("assert") or [])
        ]
        given |= {"item": test["item"]} if "item" in test else {}  # of a row of OpenAI Evals
        limit = test.get("threshold", self.default.get("threshold"))
        ranges = [each if isinstance(each, list) else [each] for each in given.values()]
        for chosen in itertools.product(*ranges):
            raw = {key: self._value(value) for key, value in zip(given, chosen, strict=True)}
            about = filled(raw, raw, strict=False)
            graded: list[str] = []
            decided = [found for at, part in parts if (found := self._assert(part, at, about, graded))]
            group = {"assert": decided, **_given(threshold=limit)}
            asserts.verdict(group, "", 0.0, [])  # refuses what cannot be decided
            if graded and limit is not None:
                self.unmatched.append(FieldError(path, "the threshold, of what a model decides; it holds for the rest"))
            answers = [part["value"] for part in decided if part.get("type") == "equals"]
            for label, system, messages in self.asked:
                *earlier, (_, question) = [(role, filled(text, about)) for role, text in messages]
                own = {"prompt": label, "system": filled(system, about)} if len(self.asked) > 1 else {}
                about_it = _given(**metadata, description=test.get("description"), asserts=decided and group)
                yield {
                    "question": f"{options.get('prefix', '')}{question}{options.get('suffix', '')}",
                    "history": [{"role": role, "content": text} for role, text in earlier],
                    "answer": next(iter(answers), None),
                    "metadata": {**about_it, **own, "vars": about, **_given(expectations=graded)},
                }

    def _assert(self, part: Any, path: KeyPath, about: Mapping[str, Any], graded: list[str]) -> dict[str, Any] | None:
        """Return what can be decided without a model; what a model decides is added to `graded`."""
        kind = str(part.get("type"))
        base = kind.removeprefix("not-")
        if kind == "assert-set":
            self._tell(part, path, (*_ASSERT, "assert"))
            inner = [self._assert(each, (*path, "assert", at), about, graded) for at, each in enumerate(part["assert"])]
            return {**part, "assert": [*filter(None, inner)]} if any(inner) else None
        known = (*asserts.CHECKS, *_GRADED) if part.get("value") else asserts.CHECKS
        if (is_code := _is_code(part.get("value"))) or base not in known:
            why = "code, which is not run" if base in _CODE or is_code else "which is not checked"
            self.unmatched.append(FieldError(path, f"an assertion of the type {kind!r}, {why}"))
            return None
        value = filled(self._value(part.get("value")), about)
        if base in asserts.CHECKS:
            self._tell(part, path, _ASSERT)
            return {**{key: part[key] for key in _ASSERT if key in part}, **({} if value is None else {"value": value})}
        self._tell(part, path, ("type", "value", "metric"))
        told = _GRADED[base] if base == kind else f"It does not hold that: {_GRADED[base]}"
        graded += [told.format(each) for each in (value if isinstance(value, list) else [value])]
        return None

    def _value(self, value: Any) -> Any:
        """Return a value, which may stand in a file. Raises ValueError: code makes it."""
        if not (isinstance(value, str) and value.startswith("file://")):
            return value
        file = self._files(value)[0]
        return Source.read(file).data if file.suffix in (".json", ".yaml", ".yml") else _text(file)

    def _texts(self, given: str) -> list[str]:
        """Return the prompts of a text, or of the files that it names."""
        if not given.startswith("file://") and not re.fullmatch(
            rf"\S+\.(txt|json|md|ya?ml|j2|{_CODE_SUFFIXES})", given
        ):
            return [given]
        return [each.strip() for file in self._files(given) for each in re.split(r"\n---\r?\n", _text(file))]

    def _files(self, given: str) -> list[Path]:
        """Return the files of a path or pattern. Raises ValueError: it is code, or there is none."""
        name = given.removeprefix("file://")
        if _is_code(f"file://{name}"):
            raise ValueError(f"{given} is code, which is not run; write out what it makes")
        if not (found := sorted(glob.glob(str(self.file.parent / name), recursive=True))):
            raise ValueError(f"there is no file {name}")
        return [*map(Path, found)]


def _told(error: Exception) -> str:
    told = "this is not as the tool's documentation has it"
    return str(error) if isinstance(error, ValueError | OSError) else f"{told}: {error!r}"


def _messages(text: str) -> list[tuple[str, str]]:
    """Return the messages of a prompt, which may be a chat in JSON or YAML. Raises ValueError: it cannot be asked."""
    try:
        data = (
            yaml.safe_load(text)
            if re.match(r"\s*(\[\s*\{\s*\"|- role:)", text)
            else [{"role": "user", "content": text}]
        )
        found = [(each["role"].replace("developer", "system"), text_of(each["content"])) for each in data]
    except (yaml.YAMLError, LookupError, TypeError) as error:
        raise ValueError(f"it is no chat: {error}") from error
    if found[-1][0] != "user":
        raise ValueError("the last message of a prompt is not the user's")
    return found


def _given(**parts: Any) -> dict[str, Any]:
    """Return the parts that are there."""
    return {key: each for key, each in parts.items() if each or (each == 0 and each is not False)}


def _mapping(data: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = data.get(key)
    return found if isinstance(found, dict) else {}


def _items(data: Mapping[str, Any], key: str) -> list[tuple[KeyPath, Any]]:
    given = data[key]
    return [((key, index), each) for index, each in enumerate(given)] if isinstance(given, list) else [((key,), given)]


def _text(file: Path) -> str:
    return read_input(file, 10_000_000).decode("utf-8-sig")


def _is_code(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch(rf"file://.*\.({_CODE_SUFFIXES})(:\w+)?", value) is not None


def _label(text: Any, taken: Collection[str] = ()) -> str:
    label = re.sub(r"[^\w.+-]+", "_", str(text)).strip("_")
    names = itertools.chain([label], (f"{label}_{number}" for number in itertools.count(2)))
    return next(name for name in names if name not in taken)


def _agent(entry: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the agent of a provider, `None` if keval has none."""
    vendor, *rest = str(entry.get("id")).split(":")
    vendor, config = _VENDORS.get(vendor, vendor), _mapping(entry, "config")
    if vendor == "echo":
        return {"type": "command", "command": ["cat"]}
    way = rest.pop(0) if len(rest) > 1 and rest[0] in ("chat", "messages", "responses") else ""
    name = ":".join(rest)
    if not name or name.endswith("-sdk") or not registry.has("keval.models", vendor):
        return None
    tokens = next((config[key] for key in _TOKENS if key in config), None)
    kind, api = "anthropic" if vendor == "anthropic" else "openai", way == "responses" and way
    return _given(
        type=kind, model=f"{vendor}/{name}", api=api, temperature=config.get("temperature"), max_tokens=tokens
    )


def _rows(file: Path) -> Iterator[dict[str, Any]]:
    """Yield the tests of a file."""
    if file.suffix == ".csv":
        yield from map(_row, csv.DictReader(_text(file).splitlines(keepends=True)))
    elif file.suffix == ".jsonl":
        yield from (orjson.loads(line) for line in _text(file).split("\n") if line.strip())
    else:
        data = Source.read(file).data
        yield from data if isinstance(data, list) else [data]


def _row(row: Mapping[str, str]) -> dict[str, Any]:
    """Return the test of a row of a CSV file."""
    own = {key[2:]: value.strip() for key, value in row.items() if key and key.startswith("__") and value}
    limit = float(own.pop("threshold")) if "threshold" in own else None
    metric = _given(metric=own.pop("metric", None))
    parts = [{**_expected(own.pop(key)), **metric} for key in [*own] if key.startswith("expected")]
    options = {key: own.pop(key) for key in ("prefix", "suffix") if key in own}
    metadata = {key.partition(":")[2]: own.pop(key) for key in [*own] if key.startswith("metadata:")}
    about = {key: value or "" for key, value in row.items() if key and not key.startswith("__")}
    return {**own, **_given(threshold=limit), "vars": about, "assert": parts, "options": options, "metadata": metadata}


def _expected(text: str) -> dict[str, Any]:
    """Read the assertion of a cell, such as `contains: text` and `levenshtein(5): text`."""
    found = re.fullmatch(r"((?:not-)?[a-z][a-z-]*)(?:\((\d+(?:\.\d+)?)\))?(?::(.*))?", text, re.DOTALL)
    kind = {"grade": "llm-rubric", "fn": "javascript", "eval": "javascript"}.get(found[1], found[1]) if found else ""
    base = kind.removeprefix("not-")
    if found is None or base not in (*asserts.CHECKS, *_GRADED, *_CODE, "similar"):
        return {"type": "equals", "value": text}
    limit = float(found[2]) if found[2] else 0.75 if base in ("latency", "levenshtein") else None
    return _given(type=kind, value=found[3] and found[3].strip(), threshold=limit)
