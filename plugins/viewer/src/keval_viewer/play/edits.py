"""Edits of what a play compares, as another evaluation made from the config's data; and what is kept of it as YAML."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import Any

import attrs
import orjson
import yaml

from keval import Sample
from keval.config.evaluation import DatasetFile, Evaluation
from keval.config.load import effective, with_data
from keval.config.source import Source
from keval.dataset.read import read_dataset
from keval.dataset.samples import sample_of
from keval.errors import ConfigError, suggestion
from keval.files import explained
from keval.run.select import Selection, select
from keval.store.serialization import dump
from keval_viewer.interactive.interactive_run import InteractiveRun, OfferedTool
from keval_viewer.play.columns import free_id
from keval_viewer.play.records import Edit, EditableCondition, KeptSample, PlayError

Tools = Callable[[str], Sequence[OfferedTool]]
"""Returns the tools of a condition that is up."""
_WIDTH = 120


def editable_conditions(evaluation: Evaluation, tools: Tools) -> tuple[EditableCondition, ...]:
    """Return what can be edited of each condition."""
    return tuple(
        EditableCondition(
            label,
            str(_entry(evaluation.source.data, label).get("system_prompt") or ""),
            condition.contexts,
            tuple(tools(label)),
        )
        for label, condition in evaluation.conditions.items()
    )


def edited(evaluation: Evaluation, edit: Edit, tools: Tools) -> Evaluation:
    """Return an evaluation with an edit. Raises ConfigError: what is edited is not there, or becomes wrong."""
    data = deepcopy(effective(evaluation))
    if edit.condition is not None:
        data = _with_condition(data, evaluation, edit, tools)
    elif edit.name is not None or edit.system_prompt is not None or edit.descriptions:
        raise ConfigError("the edit names no condition; say which one it changes")
    found = with_data(evaluation, data)
    models = tuple(f"agents.{label}={model}" for label, model in edit.models.items())
    changed = select(found, Selection(models=models))
    if effective(changed) == effective(evaluation):
        raise ConfigError("the edit changes nothing")
    return changed


def condition_yaml(evaluation: Evaluation, condition: str, written: Evaluation) -> str:
    """Return a condition as YAML, with the contexts that it needs and the config as `written` does not have so.

    It is checked by loading the config with it. Raises ConfigError.
    """
    _check_named(evaluation, condition)
    data, known = evaluation.source.data, written.source.data
    wanted = evaluation.with_bases(evaluation.conditions[condition].contexts)
    had, given = (effective(each).get("contexts", {}) for each in (written, evaluation))
    contexts = {label: given[label] for label in given if label in wanted and given[label] != had.get(label)}
    sections = {
        **({"contexts": contexts} if contexts else {}),
        "conditions": {condition: _entry(data, condition)},
    }
    merged = {**known, **{section: {**(known.get(section) or {}), **entries} for section, entries in sections.items()}}
    text = yaml_text(sections)
    if Source.parse(text, "the YAML", written.source.base).data != sections:
        raise ConfigError("the condition cannot be written as YAML: it would be read as another one")
    InteractiveRun.check(with_data(written, merged))
    return text


def _check_named(evaluation: Evaluation, condition: str) -> None:
    if condition not in evaluation.conditions:
        hint = suggestion(condition, evaluation.conditions) or f"; conditions: {', '.join(evaluation.conditions)}"
        raise ConfigError(f"no condition named {condition!r}{hint}")


def _entry(data: Any, condition: str) -> dict[str, Any]:
    """Return what a config says of a condition, which may be nothing."""
    conditions = data.get("conditions") if isinstance(data, dict) else None
    entry = conditions.get(condition) if isinstance(conditions, dict) else None
    return entry if isinstance(entry, dict) else {}


def _with_condition(data: dict[str, Any], evaluation: Evaluation, edit: Edit, tools: Tools) -> dict[str, Any]:
    label = edit.condition or ""
    _check_named(evaluation, label)
    name = edit.name or label
    if edit.name is not None and edit.name in evaluation.conditions:
        raise ConfigError(f"there is a condition named {edit.name!r} already; choose another name")
    entry = {**_entry(data, label)}
    if edit.system_prompt is not None:
        entry["system_prompt"] = edit.system_prompt
    words = _by_context(edit, tools)
    if words:
        contexts = data["contexts"] = {**data.get("contexts", {})}
        keeps = edit.name is not None
        entry["contexts"] = [
            _redescribed(contexts, context, words[context], data, keeps=keeps, by=label)
            if context in words
            else context
            for context in evaluation.conditions[label].contexts
        ]
    conditions: dict[str, Any] = {}
    for each, written in data["conditions"].items():
        # A new condition stands behind the one that it was made of.
        conditions[each] = entry if each == name else written
        if each == label:
            conditions[name] = entry
    return {**data, "conditions": conditions}


def _by_context(edit: Edit, tools: Tools) -> dict[str, dict[str, str]]:
    """Return the new descriptions by context, under the names that tools have in it."""
    label = edit.condition or ""
    owners = {tool.name: (tool.context, tool.own_name) for tool in tools(label)}
    words: dict[str, dict[str, str]] = {}
    for tool, description in edit.descriptions.items():
        if tool not in owners:
            hint = suggestion(tool, owners) or f"; tools: {', '.join(owners) or 'none'}"
            raise ConfigError(f"the condition {label!r} has no tool {tool!r}{hint}")
        context, own = owners[tool]
        words.setdefault(context, {})[own] = description
    return words


def _redescribed(
    contexts: dict[str, Any], context: str, words: Mapping[str, str], data: Mapping[str, Any], *, keeps: bool, by: str
) -> str:
    """Add a context that describes tools otherwise; returns its label. One that an edit made is changed itself.

    If it `keeps` the condition `by` as it is, or another condition has the context, that stays.
    """
    entry = contexts.get(context) or {}
    base, described = context, dict[str, Any]()
    if entry.keys() == {"from", "describe"}:
        base, described = entry["from"], dict(entry["describe"])
    for tool, description in words.items():
        before = described.get(tool)
        described[tool] = {**before, "description": description} if isinstance(before, dict) else description
    users = {label for label, other in data["conditions"].items() if context in ((other or {}).get("contexts") or ())}
    if base != context and not keeps and users == {by}:
        label = context
    else:
        # More names than there are contexts, so one is free.
        numbered = (f"{base}_edited{number or ''}" for number in (0, *range(2, len(contexts) + 3)))
        label = next(each for each in numbered if each not in contexts)
    contexts[label] = {"from": base, "describe": described}
    return label


def keep(sample: Sample, file: DatasetFile) -> KeptSample:
    """Append a sample to a dataset, which is made if there is none.

    Raises:
        PlayError: the file is no JSON lines.
        ConfigError: it is no dataset.
        RunError: it cannot be written.
    """
    if file.format != "jsonl":
        raise PlayError(f"{file.path}: questions are kept in JSON lines; name a file that ends in .jsonl")
    # An empty file is no dataset yet, which reading would refuse.
    exists = file.path.exists() and file.path.stat().st_size > 0
    taken = read_dataset(file).samples.ids if exists else ()
    kept = attrs.evolve(sample, id=free_id(sample.id, {*taken}), withheld=(), expect=())
    record = _record(kept, file)
    line = dump(record) + b"\n"
    added = line if not exists or file.path.read_bytes().endswith(b"\n") else b"\n" + line
    if sample_of(orjson.loads(dump(record)), file) != kept:
        raise PlayError(f"{file.path}: the format of the dataset cannot hold this question")
    with explained(file.path):
        file.path.parent.mkdir(parents=True, exist_ok=True)
        with file.path.open("ab") as target:
            target.write(added)
            # On disk when the page says that the question is kept.
            target.flush()
            os.fsync(target.fileno())
    return KeptSample(file.path, kept.id, added.decode().strip("\n"))


def _record(sample: Sample, file: DatasetFile) -> dict[str, Any]:
    """Return a sample as a record, without what it does not have."""
    turns = sample.turns
    if turns[:1] == (sample.question,):
        turns = sample.asked  # whose first one readers take for the question
    history = [{"role": message.role, "content": message.text} for message in sample.history]
    given: Mapping[str, Any] = {
        "id": sample.id,
        file.question_key: sample.question,
        "turns": [*turns],
        "history": history,
        file.answer_key: [*sample.answers] if sample.other_answers else sample.answer,
        "facts": {**sample.facts},
        "metadata": {**sample.metadata},
    }
    return {key: value for key, value in given.items() if value not in (None, [], {})}


class _Dumper(yaml.SafeDumper):
    """Writes lists indented below their key, and texts of several lines as blocks."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text.strip("\n") or text.endswith("\n") else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", str(text), style=style)


_Dumper.add_representer(str, _text)


def yaml_text(data: Any) -> str:
    """Return plain data as YAML."""
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=_WIDTH)
