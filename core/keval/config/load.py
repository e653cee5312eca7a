"""Loading an evaluation: from its YAML file, or again from the manifest of a run."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import attrs

from keval.config.evaluation import Evaluation, Header, PluginSpec
from keval.config.sections import NOUNS, SectionReader
from keval.config.source import Source
from keval.config.structure import structure
from keval.errors import ConfigError, Problem
from keval.records.manifest import Manifest
from keval.records.scores import Rubric
from keval.seams import registry
from keval.seams.formats import translate


def load(path: Path) -> Evaluation:
    """Read an evaluation from a YAML file. Raises ConfigError if it is not valid YAML, or not a mapping."""
    return read_evaluation(source_of(path))


def source_of(path: Path) -> Source:
    """Return the data of a YAML file, or what names a file of which a format reads the suffix. Raises ConfigError."""
    word = path.suffix[1:]
    named = Source(str(path), path.resolve().parent, {word: path.name})
    reader = registry.load(registry.find("keval.formats", word)) if registry.has("keval.formats", word) else None
    return named if reader and reader.translate(named.data, path) else Source.read(path)


def read_evaluation(source: Source) -> Evaluation:
    """Read an evaluation from a source, with its problems. Raises ConfigError if that is not a mapping."""
    if not isinstance(source.data, dict):
        message = "an evaluation is a mapping with dataset:, agents:, conditions: and metrics:"
        raise ConfigError([source.problem((), message)])
    translated = translate(source.data, source.base / Path(source.name).name)
    evaluation = _read(source.moved(translated.data, translated.moves), source.problems(translated.problems))
    notices, unmatched = map(tuple, map(source.problems, (translated.notices, translated.unmatched)))
    return attrs.evolve(evaluation, notices=notices, unmatched=unmatched)


def _read(source: Source, problems: Iterable[Problem] = ()) -> Evaluation:
    """Read an evaluation that is written in keval's own words; `problems` are those known already."""
    reader = SectionReader(source, [*problems])
    return attrs.evolve(reader.evaluation(), problems=tuple(reader.problems), lacks=reader.lacks)


def with_data(evaluation: Evaluation, data: dict[str, Any]) -> Evaluation:
    """Read an evaluation again from other data, such as `effective` returns; what the command line chose stays."""
    found = _read(Source(evaluation.source.name, evaluation.source.base, data))
    judges = _with_implied(found.judges, {spec.label for spec in evaluation.judges if spec.implied})
    return attrs.evolve(found, judges=judges, limit=evaluation.limit, sample_ids=evaluation.sample_ids)


def _with_implied(judges: Iterable[PluginSpec], labels: Collection[str]) -> tuple[PluginSpec, ...]:
    """Mark the judges with these labels as implied: data names every judge's plugin, also where a config did not."""
    return tuple(attrs.evolve(spec, implied=spec.label in labels) for spec in judges)


def rebuild(manifest: Manifest, place: str) -> Evaluation:
    """Return the evaluation that a run was made of; `place` is what errors call its manifest."""
    evaluation = _reread(manifest, manifest.config, place)
    selection = manifest.selection
    # A config without a name has that of its file, which is no longer the one that is read.
    header = attrs.evolve(evaluation.header, name=manifest.evaluation)
    return attrs.evolve(evaluation, header=header, limit=selection.limit, sample_ids=selection.sample_ids)


def rebuild_scoring(manifest: Manifest, place: str) -> Evaluation:
    """Return the part of a run's evaluation that scores: metrics, judges, rubrics, middleware, plugins.

    Prompts, agents and questions are not read again, so the variables that they need may be unset.
    """
    config = {
        **manifest.config,
        "conditions": dict.fromkeys(manifest.conditions),
        "dataset": {"path": manifest.dataset.path},
    }
    return attrs.evolve(_reread(manifest, config, place), agents=(), contexts=())


def effective(evaluation: Evaluation) -> dict[str, Any]:
    """Write an evaluation back as plain data, as it will run: after selection, variables as written."""
    data = evaluation.source.data
    own = {name for section in evaluation.sections for name in attrs.fields_dict(type(section))}
    as_written = (*attrs.fields_dict(Header), "dataset", "prices", "providers", *sorted(own))
    kept = {key: data[key] for key in as_written if key in data}
    execution = data.get("execution") or {}
    # A flag that leaves the baseline out clears it in the header, while the data still name it.
    if evaluation.header.baseline is None:
        kept.pop("baseline", None)
    named = {
        section: {spec.label: _written(spec) for spec in specs}
        for section in NOUNS
        if (specs := _specs(evaluation, section))
    }
    return {
        **kept,
        **named,
        # As written, with the variables in their prompts.
        "conditions": {label: data.get("conditions", {}).get(label) for label in evaluation.conditions},
        **{
            section: [{spec.type: dict(spec.options)} if spec.options else spec.type for spec in specs]
            for section in ("metrics", "rubrics", "middleware", "plugins")
            if (specs := _specs(evaluation, section))
        },
        "execution": {**attrs.asdict(evaluation.execution), **{key: execution[key] for key in own & execution.keys()}},
        "budget": attrs.asdict(evaluation.budget),
        # The keys that flags changed, which are otherwise than in the data that the evaluation was read from.
        **{key: each for section in evaluation.sections for key, each in getattr(section, "written", {}).items()},
    }


def _specs(evaluation: Evaluation, section: str) -> list[PluginSpec]:
    """Return the plugins of a section as they are written: a file in a type is relative to the config."""
    folder = f"{evaluation.source.base.as_posix()}/"
    return [attrs.evolve(each, type=each.type.removeprefix(folder)) for each in getattr(evaluation, section)]


def _written(spec: PluginSpec) -> dict[str, Any]:
    # Type and options of a derived context are its origin's, which stands in the data as well.
    if spec.base is not None:
        return dict(spec.changes)
    about = {} if spec.characteristics is None else {"characteristics": spec.characteristics}
    return {"type": spec.type, **spec.options, **spec.changes, **about}


def _reread(manifest: Manifest, config: Mapping[str, Any], place: str) -> Evaluation:
    evaluation = _read(Source(place, Path(manifest.config_folder), dict(config)))
    implied = {label for label, judge in manifest.judges.items() if judge.implied}
    return attrs.evolve(evaluation, judges=_with_implied(evaluation.judges, implied), is_reread=True)


T = TypeVar("T")


def read_record(cls: type[T], path: Path, *, about: str, defaults: Mapping[str, Any] | None = None) -> T:
    """Read a YAML file into the attrs class `cls`; `about` tells what is in such a file, for errors.

    `defaults` are values of keys that the file lacks. Variables of the environment are not filled in, so that the file
    is the same everywhere.

    Raises ConfigError with every problem, each at its place.
    """
    source = Source.read(path)
    if not isinstance(source.data, dict):
        raise ConfigError([source.problem((), about)])
    record, errors = structure(cls, {**(defaults or {}), **source.data}, (), source.base, variables=False)
    if record is None:
        raise ConfigError(source.problems(errors))
    return record


def read_rubric(path: Path) -> Rubric:
    """Read a rubric: `instructions` and `levels`, and `name`, which is the file's by default.

    Raises ConfigError with every problem, each at its place.
    """
    about = "a rubric is a mapping with instructions: and levels:"
    return read_record(Rubric, path, about=about, defaults={"name": path.stem})
