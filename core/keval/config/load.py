"""Reading an evaluation out of a source: sections, short forms, references; every problem at once."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import attrs

from keval import registry
from keval.config.evaluation import Condition, DatasetFile, Evaluation, Execution, Header, PluginUse
from keval.config.judge_type import implied_judge, implies_judge
from keval.config.misfit import Misfit
from keval.config.source import KeyPath, Source, interpolate
from keval.config.structure import structure
from keval.errors import ConfigError, Problem
from keval.nearest import suggestion

__all__ = ["AGENT_ALIASES", "SECRET_OPTION", "SECTIONS", "SHORT_FORMS", "effective", "load", "read"]

T = TypeVar("T")

SECTIONS = {
    "dataset": "where the questions are",
    "agents": "the systems under test, by label",
    "contexts": "what agents may be given: MCP servers and bundles, by label",
    "conditions": "the arms to compare, by label; the first is the baseline; without any there is one, `baseline`",
    "metrics": "scorers that need no model: names, or name: {options}",
    "judges": "models that grade, by label",
    "rubrics": "what judges grade by: names, or name: {options}",
    "plugins": "hook plugins to load: names, or name: {options}",
    "execution": "how often, how parallel, how patient",
}
SHORT_FORMS = {"agent": "agents", "judge": "judges", "mcp_servers": "contexts"}
AGENT_ALIASES = {"claude_code_sdk": "claude-code"}
"""Agents by the names that k-eval gives them."""
_ONLY = "baseline"
"""What the one condition of an evaluation that names none is called."""
_LABEL = re.compile(r"\w[\w.+-]*(?: [\w.+-]+)*")
SECRET_OPTION = re.compile(r"(?:.*_)?(?:api_key|password|secret|token)")
"""Names of options that hold a secret: a run keeps its config, where only the variable's name may be."""
_ONLY_VARIABLE = re.compile(r"\$\{\w+(?::-)?\}|")


def load(path: Path) -> Evaluation:
    """Read an evaluation from a YAML file. Raises ConfigError when it is no YAML, or no mapping."""
    return read(Source.read(path))


def read(source: Source) -> Evaluation:
    """Read an evaluation from a source, with its problems. Raises ConfigError when that is no mapping."""
    if not isinstance(source.data, dict):
        message = "an evaluation is a mapping with dataset:, agents:, conditions: and metrics:"
        raise ConfigError([Problem(source.place(()), message)])
    reader = _Reader(source)
    evaluation = reader.evaluation()
    return attrs.evolve(evaluation, problems=tuple(reader.problems))


def effective(evaluation: Evaluation) -> dict[str, Any]:
    """Write an evaluation back as plain data, as it will run: after selection, variables as written."""
    data = evaluation.source.data
    kept = {key: data[key] for key in (*attrs.fields_dict(Header), "dataset") if key in data}
    if evaluation.header.baseline is None:
        kept.pop("baseline", None)
    named = {
        section: {use.label: {"type": use.type, **use.options} for use in uses}
        for section in ("agents", "contexts", "judges")
        if (uses := getattr(evaluation, section))
    }
    listed = {
        section: [{use.label: dict(use.options)} if use.options else use.label for use in uses]
        for section in ("metrics", "rubrics", "plugins")
        if (uses := getattr(evaluation, section))
    }
    return {
        **kept,
        **named,
        "conditions": {label: data.get("conditions", {}).get(label) for label in evaluation.conditions},
        **listed,
        "execution": attrs.asdict(evaluation.execution),
    }


class _Reader:
    """Collects problems while the sections are read."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.problems: list[Problem] = []

    def evaluation(self) -> Evaluation:
        data = self.source.data
        self._check_keys(data)
        headers = {key: data[key] for key in attrs.fields_dict(Header) if key in data}
        header = self._record(Header, headers, ())
        if "dataset" not in data:
            self._problem((), "the key 'dataset' is missing; add `dataset: {path: questions.jsonl}`")
        dataset = self._record(DatasetFile, data["dataset"], ("dataset",)) if "dataset" in data else None
        execution = self._record(Execution, data.get("execution"), ("execution",))
        agents, contexts = self._named("agents", "agent"), self._named("contexts", "context")
        conditions = self._conditions()
        judges = self._named("judges", "judge")
        metrics, rubrics, plugins = (self._listed(section) for section in ("metrics", "rubrics", "plugins"))
        if not agents and not {"agents", "agent"} & data.keys():
            self._problem((), "the key 'agents' is missing; add `agents: {gadk: {model: simulated/weather}}`")
        header = header or Header()
        self._check_reference(("baseline",), "condition", header.baseline, [*self._labels("conditions"), *conditions])
        return Evaluation(
            self.source,
            header,
            dataset,
            agents,
            contexts,
            conditions,
            metrics,
            judges,
            rubrics,
            plugins,
            execution or Execution(),
        )

    def _check_keys(self, data: Mapping[Any, Any]) -> None:
        known = [*attrs.fields_dict(Header), *SECTIONS, *SHORT_FORMS]
        for key in data:
            if key not in known:
                hint = suggestion(key, known) or f"; known keys: {', '.join(known)}"
                if key in attrs.fields_dict(Execution):
                    hint = "; it belongs under `execution:`"
                self._problem((key,), f"unknown key {key!r}{hint}", at_key=True)
        for short, section in SHORT_FORMS.items():
            if short in data and section in data:
                self._problem((short,), f"{short!r} and {section!r} are the same; keep one", at_key=True)

    def _record(self, cls: type[T], data: Any, path: KeyPath) -> T | None:
        record, misfits = structure(cls, data, path, self.source.base)
        self._misfits(misfits)
        return record

    def _named(self, section: str, noun: str) -> tuple[PluginUse, ...]:
        """Read a section that maps labels to options; `noun` is its short form or what one entry is called."""
        data = self.source.data
        if noun in data and noun in SHORT_FORMS:
            one = data[noun]
            if not isinstance(one, dict) or not isinstance(one.get("type", noun), str):
                self._problem((noun,), f"expected a mapping with type: and the options of one {noun}")
                return ()
            if "type" not in one and not (noun == "judge" and "model" in one):
                needed = "`type:` with the name of an agent" if noun == "agent" else "`model:`, such as openai/gpt-4o"
                self._problem((noun,), f"add {needed}; `keval plugins` lists what is installed", at_key=True)
                return ()
            kind = self._filled(one.get("type", noun), (noun, "type"))
            implied = noun == "judge" and "type" not in one
            if implied:
                kind = implied_judge(one)
            elif noun == "agent":
                kind = AGENT_ALIASES.get(kind, kind)
            return (self._use(registry.label(f"keval.{section}", kind), kind, one, (noun,), implied=implied),)
        key = next((short for short, long in SHORT_FORMS.items() if long == section and short in data), section)
        entries = data.get(key)
        if entries is None and key not in data:
            return ()
        if not isinstance(entries, dict) or (not entries and section == "agents"):
            self._problem((key,), f"expected a mapping of labels to options, such as `{noun}_label: {{type: …}}`")
            return ()
        uses = []
        for label, options in entries.items():
            path = (key, label)
            if not _LABEL.fullmatch(label):
                self._problem(
                    path, f"a label is letters, digits, single spaces and _.+- only, got {label!r}", at_key=True
                )
            elif options is not None and not isinstance(options, dict):
                self._problem(path, f"expected a mapping of options, got {options!r}")
            elif not isinstance(name := (options or {}).get("type", label), str):
                self._problem((*path, "type"), "expected the name of a plugin")
            else:
                kind = self._filled(name, (*path, "type"))
                implied = section == "judges" and "type" not in (options or {}) and implies_judge(label, options or {})
                if implied:
                    kind = implied_judge(options or {})
                elif section == "agents":
                    kind = AGENT_ALIASES.get(kind, kind)
                uses.append(self._use(label, kind, options or {}, path, implied=implied))
        return tuple(uses)

    def _listed(self, section: str) -> tuple[PluginUse, ...]:
        """Read a section that lists names, or name: {options}."""
        entries = self.source.data.get(section)
        if entries is None:
            return ()
        if not isinstance(entries, list):
            self._problem((section,), "expected a list of names, or of `name: {options}`")
            return ()
        uses: dict[str, PluginUse] = {}
        for index, entry in enumerate(entries):
            path: KeyPath = (section, index)
            name, options = next(iter(entry.items())) if isinstance(entry, dict) and len(entry) == 1 else (entry, None)
            name = self._filled(name, path) if isinstance(name, str) else name
            if not isinstance(name, str) or not isinstance(options, dict | None):
                self._problem(path, "expected a name, or one `name: {options}`")
            elif name in uses:
                self._problem(path, f"{name!r} is listed twice; keep one")
            else:
                uses[name] = PluginUse(name, name, options or {}, (*path, name) if options is not None else path)
        return tuple(uses.values())

    def _conditions(self) -> dict[str, Condition]:
        contexts = [*self._labels("contexts"), *self._labels("mcp_servers")]
        if "conditions" not in self.source.data and not contexts:
            return {_ONLY: Condition()}
        data = self.source.data.get("conditions")
        if not isinstance(data, dict) or not data:
            path: KeyPath = ("conditions",) if "conditions" in self.source.data else ()
            if data:
                self._problem(path, "expected a mapping of labels to conditions, such as `baseline: {}`")
                return {}
            use = "".join(f", with_{name}: {{contexts: [{name}]}}" for name in contexts[:1])
            self._problem(path, f"no conditions; add at least one, such as `conditions: {{{_ONLY}: {{}}{use}}}`")
            return {}
        conditions: dict[str, Condition] = {}
        for label, entry in data.items():
            path = ("conditions", label)
            if not _LABEL.fullmatch(label):
                self._problem(
                    path, f"a label is letters, digits, single spaces and _.+- only, got {label!r}", at_key=True
                )
                continue
            key, arm = _contexts_key(entry)
            condition = self._record(Condition, arm, path)
            if condition is None:
                continue
            conditions[label] = condition
            for required in ("require_mcp_tool_use", "require_mcp_tool_success"):
                if getattr(condition, required) and not condition.contexts:
                    problem = f"{label!r} has no context, so no tool can be used; give it one, or leave this out"
                    self._problem((*path, required), problem, at_key=True)
            for index, name in enumerate(condition.contexts):
                self._check_reference((*path, key, index), "context", name, contexts)
                if name in condition.contexts[:index]:
                    self._problem((*path, key, index), f"{name!r} is listed twice; keep one")
        return conditions

    def _labels(self, section: str) -> list[str]:
        """The labels of a section, those of broken entries too: what refers to them is not wrong."""
        entries = self.source.data.get(section)
        return list(entries) if isinstance(entries, dict) else []

    def _check_reference(self, path: KeyPath, noun: str, name: str | None, labels: Sequence[str]) -> None:
        if name is not None and name not in labels:
            hint = suggestion(name, labels) or f"; {noun}s: {', '.join(labels) or 'none'}"
            self._problem(path, f"no {noun} named {name!r}{hint}")

    def _use(
        self, label: str, kind: str, options: Mapping[str, Any], path: KeyPath, *, implied: bool = False
    ) -> PluginUse:
        given = {key: value for key, value in options.items() if key != "type"}
        for key, value in given.items():
            if SECRET_OPTION.fullmatch(key) and isinstance(value, str) and not _ONLY_VARIABLE.fullmatch(value):
                problem = (
                    f"write {key}: ${{{key.upper()}}} and export that; what stands here is in every copy of this file"
                )
                self._problem((*path, key), problem)
        return PluginUse(label, kind, given, path, implied)

    def _filled(self, text: str, path: KeyPath) -> str:
        """Fill in the variables of a plugin's name."""
        filled, unset = interpolate(text, path)
        self._misfits(Misfit(at, message) for at, message in unset)
        return str(filled)

    def _misfits(self, misfits: Iterable[Misfit]) -> None:
        for misfit in misfits:
            self._problem(misfit.path, misfit.message, at_key=misfit.at_key)

    def _problem(self, path: KeyPath, message: str, *, at_key: bool = False) -> None:
        self.problems.append(Problem(self.source.place(path, key=at_key), message))


def _contexts_key(entry: Any) -> tuple[str, Any]:
    """Read `mcp_servers` of a condition as its contexts; both at once stay, and are an unknown key."""
    if isinstance(entry, dict) and "mcp_servers" in entry and "contexts" not in entry:
        renamed = {("contexts" if key == "mcp_servers" else key): value for key, value in entry.items()}
        return "mcp_servers", renamed
    return "contexts", entry
