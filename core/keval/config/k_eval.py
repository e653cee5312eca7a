"""The k-eval dialect: a config written for k-eval is translated into keval's own words before anything reads it.

Source: k-eval.md, Configuration. `agent:` and `judge:` hold one each, `mcp_servers:` are contexts, and models have the
names that LiteLLM gives them. Places of errors stay those of the user's file.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from keval.config.source import KeyPath, Source
from keval.config.variables import interpolate
from keval.errors import Problem
from keval.seams import registry

_SHORT_FORMS = {"agent": "agents", "judge": "judges", "mcp_servers": "contexts"}
_AGENTS = {"claude_code_sdk": "claude-code"}
_PROVIDERS = {"gemini": "google"}
_IMPLIED_JUDGE = "judge"
"""The label of a judge of which the config gives only the model."""


@attrs.frozen
class Translation:
    """A source in keval's own words, with its problems and with notices for the user."""

    source: Source
    problems: tuple[Problem, ...] = ()
    notices: tuple[Problem, ...] = ()


def agent_type(name: str) -> str:
    """Return the agent plugin that k-eval's name of an agent stands for."""
    return _AGENTS.get(name, name)


def model_name(name: str) -> str:
    """Return a model's name in keval's spelling."""
    provider, slash, rest = name.partition("/")
    return f"{_PROVIDERS.get(provider, provider)}{slash}{rest}"


def spellings(section: str, name: str) -> list[str]:
    """Return a plugin's name, and what else a config may call it."""
    return [name, *(alias for alias, meant in _AGENTS.items() if section == "agents" and meant == name)]


def translate(source: Source) -> Translation:
    """Translate a config; one in keval's own words is returned unchanged."""
    if not isinstance(source.data, dict):
        return Translation(source)
    dialect = _Dialect(source, dict(source.data))
    written_for_k_eval = any(key in source.data for key in _SHORT_FORMS)
    for short, section in _SHORT_FORMS.items():
        if short in source.data and section in source.data:
            dialect.problem((short,), f"{short!r} and {section!r} are the same; keep one", at_key=True)
            del dialect.data[short]
    for noun in ("agent", "judge"):
        if noun in dialect.data:
            dialect.unfold(noun)
    dialect.rename_prices()
    if "mcp_servers" in dialect.data:
        dialect.rename((), "mcp_servers", "contexts")
    dialect.rename_in_entries()
    dialect.translate_conditions(lenient=written_for_k_eval)
    if written_for_k_eval:
        dialect.find_dataset()
    moved = source.moved(dialect.data, dialect.moves)
    return Translation(moved, tuple(dialect.problems), tuple(dialect.notices))


def extend_schema(properties: dict[str, Any]) -> None:
    """Add the dialect's keys to the JSON Schema of a config's sections."""
    for short, section in _SHORT_FORMS.items():
        whole = properties[section]
        properties[short] = whole if short == "mcp_servers" else whole["additionalProperties"]
    condition = properties["conditions"]["additionalProperties"]["properties"]
    condition["mcp_servers"] = condition["contexts"]


class _Dialect:
    """A copy of a config's data while it is translated, with the original path of each part that was moved."""

    def __init__(self, source: Source, data: dict[str, Any]) -> None:
        self.source = source
        self.data = data
        self.moves: dict[KeyPath, KeyPath] = {}
        self.problems: list[Problem] = []
        self.notices: list[Problem] = []

    def unfold(self, noun: str) -> None:
        """Make `agent:` or `judge:` the one entry of its section."""
        one = self.data.pop(noun)
        if not isinstance(one, dict) or not isinstance(one.get("type", noun), str):
            self.problem((noun,), f"expected a mapping with type: and the options of one {noun}")
            return
        if "type" not in one and not (noun == "judge" and "model" in one):
            needed = "`type:` with the name of an agent" if noun == "agent" else "`model:`, such as openai/gpt-4o"
            self.problem((noun,), f"add {needed}; `keval plugins` lists what is installed", at_key=True)
            return
        section = _SHORT_FORMS[noun]
        label = _IMPLIED_JUDGE
        if "type" in one:
            filled, unset = interpolate(one["type"], (noun, "type"))
            if unset:
                self.problems += [Problem(self.source.place(path), message) for path, message in unset]
                return
            label = registry.label(f"keval.{section}", agent_type(str(filled)) if noun == "agent" else str(filled))
        self.data[section] = {label: one}
        self.moves[noun,] = (section, label)

    def rename(self, parent: KeyPath, old: str, new: str) -> None:
        """Rename a key of the mapping at `parent`, which is a copy already."""
        mapping: Any = self.data
        for step in parent:
            mapping = mapping[step]
        items = [(new if key == old else key, value) for key, value in mapping.items()]
        mapping.clear()
        mapping.update(items)
        self.moves[*parent, old] = (*parent, new)

    def rename_in_entries(self) -> None:
        """Translate the types of agents, and the models of agents and judges."""
        for section in ("agents", "judges"):
            entries = self.data.get(section)
            if isinstance(entries, dict):
                self.data[section] = {label: _entry(section, label, entry) for label, entry in entries.items()}

    def rename_prices(self) -> None:
        """Translate the models that `prices` are given for."""
        prices = self.data.get("prices")
        if isinstance(prices, dict):
            self.data["prices"] = dict(prices)
            for name in prices:
                if (model := model_name(name)) != name and model not in prices:
                    self.rename(("prices",), name, model)

    def translate_conditions(self, *, lenient: bool) -> None:
        """Read `mcp_servers` of a condition as its contexts. If it has both, `mcp_servers` stays and is an unknown key.

        k-eval enforces the required use of tools only where a condition has servers: `lenient` says to do the same.
        """
        conditions = self.data.get("conditions")
        if not isinstance(conditions, dict):
            return
        self.data["conditions"] = {k: dict(v) if isinstance(v, dict) else v for k, v in conditions.items()}
        for label, condition in self.data["conditions"].items():
            if not isinstance(condition, dict):
                continue
            if "mcp_servers" in condition and "contexts" not in condition:
                self.rename(("conditions", label), "mcp_servers", "contexts")
            for key in ("require_mcp_tool_use", "require_mcp_tool_success"):
                if lenient and condition.get(key) is True and not condition.get("contexts"):
                    del condition[key]
                    told = f"{label!r} has no server, so {key} is not enforced there, as in k-eval"
                    self.notice(("conditions", label, key), told)

    def find_dataset(self) -> None:
        """Take a dataset relative to the working directory, as k-eval does, if the config's folder does not have it."""
        dataset = self.data.get("dataset")
        path = dataset.get("path") if isinstance(dataset, dict) else None
        if not isinstance(dataset, dict) or not isinstance(path, str) or "${" in path:
            return
        if not (self.source.base / path).exists() and Path(path).is_file():
            found = Path(path).resolve()
            self.data["dataset"] = {**dataset, "path": str(found)}
            told = f"the dataset is taken relative to the working directory, as in k-eval: {found}"
            self.notice(("dataset", "path"), told)

    def problem(self, path: KeyPath, message: str, *, at_key: bool = False) -> None:
        self.problems.append(Problem(self.source.place(path, key=at_key), message))

    def notice(self, path: KeyPath, message: str) -> None:
        self.notices.append(Problem(self.source.place(path, key=True), message))


def _entry(section: str, label: str, entry: Any) -> Any:
    if entry is None and agent_type(label) != label:
        return {"type": agent_type(label)} if section == "agents" else entry
    if not isinstance(entry, Mapping):
        return entry
    changed = dict(entry)
    named = changed.get("type", label)
    if section == "agents" and isinstance(named, str) and agent_type(named) != named:
        changed["type"] = agent_type(named)
    if isinstance(changed.get("model"), str):
        changed["model"] = model_name(changed["model"])
    return changed
