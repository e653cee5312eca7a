"""Records as JSON, by the line and as files, and back, with the types that summaries and tables count on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import attrs
import cattrs
import msgspec
import orjson
from cattrs.gen import make_dict_structure_fn, override

from keval.config.structure import structure
from keval.errors import RunError
from keval.files import read_json
from keval.records.manifest import FORMAT, Manifest
from keval.records.scores import LARGEST, Score, ScoreLine
from keval.records.trial import Sample, Trial

T = TypeVar("T")

_SHOWN = frozenset({"result", "error", "reason", "message", "traceback"})
"""Fields that are only shown, and in which an adapter may have left something else than a text: its JSON is read."""


def fields_of(record: Any) -> dict[str, Any]:
    """Return the fields of a record by name, with their values as they are, and the unknown keys that it keeps.

    A field that few records have, `sparse` by its metadata, is left out where it is empty.
    """
    fields = {name: getattr(record, name) for name in _names(record.__class__)}
    for name in _sparse(record.__class__):
        if not fields[name] and fields[name].__class__ is not float:  # a cost of 0 is known
            del fields[name]
    if (rest := _rest(record.__class__)) is not None:
        fields.update(fields.pop(rest))
    return fields


def read_record(kind: type[T], data: Any) -> T:
    """Make a record of its fields, and of mappings in them the records that belong there; unknown keys are left out.

    Raises TypeError, ValueError or LookupError: it is no mapping, or a field is lacking or has a wrong type.
    """
    return _reader().structure(data, kind)


@cache
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in attrs.fields(kind))


@cache
def _sparse(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in attrs.fields(kind) if field.metadata.get("sparse"))


@cache
def _rest(kind: Any) -> str | None:
    return next((field.name for field in attrs.fields(kind) if field.metadata.get("unknown_keys")), None)


@cache
def _reader() -> cattrs.Converter:
    """Return what reads records field by field. A literal may be any text: adapters and other versions have others."""
    converter = cattrs.Converter(detailed_validation=False)
    # JSON has one kind of number, so what is written as 1 may have been a float.
    for kind, types in {str: (str,), bool: (bool,), bytes: (bytes,), int: (int, float), float: (int, float)}.items():
        converter.register_structure_hook(kind, partial(_checked, types=types))
    for origin, types in {Literal: (str,), Mapping: (Mapping,)}.items():
        converter.register_structure_hook_func(partial(_has_origin, origin), partial(_checked, types=types))
    converter.register_structure_hook_factory(partial(_has_origin, tuple), _items)
    converter.register_structure_hook_factory(attrs.has, _fields)
    return converter


def _has_origin(origin: Any, hint: Any) -> bool:
    return get_origin(hint) is origin


def _checked(value: T, hint: Any, *, types: tuple[type, ...]) -> T:
    if not isinstance(value, types):
        raise TypeError(f"expected {hint}, got {value!r:.60}")
    return value


def _items(hint: Any, converter: cattrs.Converter) -> Callable[[Any, Any], Any]:
    item = get_args(hint)[0]
    return lambda value, _: tuple(
        converter.structure(each, item) for each in _checked(value, hint, types=(list, tuple))
    )


def _fields(kind: Any, converter: cattrs.Converter) -> Callable[[Any, Any], Any]:
    hints = get_type_hints(kind)
    shown = {name for name in _names(kind) if name in _SHOWN and str in (hints[name], *get_args(hints[name]))}
    overrides: Any = {name: override(struct_hook=_text) for name in shown}
    fill = make_dict_structure_fn(kind, converter, **overrides)
    return lambda value, _: value if isinstance(value, kind) else fill(_checked(value, kind, types=(Mapping,)), kind)


def _text(value: Any, hint: Any) -> str | None:
    """Return a text that is only shown, and the JSON of anything else."""
    if value is None:
        return None if type(None) in get_args(hint) else ""
    return value if isinstance(value, str) else dump(value).decode()


# In the order in which they are written.
_OF_TRIAL = (
    *("id", "sample", "agent", "model", "condition", "repetition", "output", "transcript", "failure", "complied"),
    "attempts",
)


@cache
def _decoder(kind: type[T]) -> msgspec.json.Decoder[T]:
    """Return what reads records of a kind; what it refuses may be of an adapter that wrote something else into them."""
    return msgspec.json.Decoder(kind)


def _line(*kinds: type, **types: Any) -> msgspec.json.Decoder[Any]:
    """Return what reads lines with the fields of these records, some of another type, as keval writes them.

    One of the records that is a field of another has its own fields in the place of that one.
    """
    fields: list[Any] = []
    for kind in kinds:
        hints = {**get_type_hints(kind), **types}
        for field in attrs.fields(kind):
            default = {} if isinstance(field.default, attrs.Factory) else field.default  # type: ignore[arg-type]
            given = () if default is attrs.NOTHING else (default,)  # msgspec copies an empty default
            fields += [] if hints[field.name] in kinds else [(field.name, hints[field.name], *given)]
    return msgspec.json.Decoder(msgspec.defstruct("Line", fields, kw_only=True))


_TRIAL_LINE = _line(Trial, sample=str)
_SCORE_LINE = _line(ScoreLine, Score, value=int | float | None)


_DEEPEST = 200
"""orjson writes 254 levels; arguments that a model makes up may have more."""


def dump(data: Any) -> bytes:
    """Write plain data as one line of JSON. A lone surrogate, which UTF-8 cannot encode, becomes `?`."""
    options = orjson.OPT_NON_STR_KEYS
    # orjson refuses lone surrogates, large integers and deep nesting, all of which a model can make up.
    # Data are only walked through after such an error.
    try:
        return orjson.dumps(data, option=options, default=_plain)
    except orjson.JSONEncodeError:
        return orjson.dumps(_encodable(data), option=options, default=_plain)


def sample_line(sample: Sample) -> bytes:
    """Write a sample."""
    return dump(sample)


def read_sample(line: bytes) -> Sample:
    """Read a line of samples.jsonl. Raises LookupError, TypeError or ValueError."""
    try:
        sample: Sample = _decoder(Sample).decode(line)
        return sample
    except ValueError:
        # msgspec takes a quarter of the time, for what keval writes. What an adapter left is read field by field.
        return read_record(Sample, orjson.loads(line))


def trial_line(trial: Trial) -> bytes:
    """Write a trial, without its sample's content and its agent's characteristics, which the run keeps elsewhere."""
    return dump({name: trial.sample.id if name == "sample" else getattr(trial, name) for name in _OF_TRIAL})


def read_trial(
    line: bytes, sample: Callable[[str], Sample], characteristics: Callable[[str], Mapping[str, Any]]
) -> Trial:
    """Read a line of trials.jsonl. Raises LookupError, TypeError or ValueError.

    `sample` returns a sample by its id, and `characteristics` those of an agent by its label.
    """
    try:
        told = _TRIAL_LINE.decode(line)
    except ValueError:
        data = orjson.loads(line)
        data.pop("output", None)  # the transcript has it
        data["sample"], data["characteristics"] = sample(data["sample"]), characteristics(data["agent"])
        trial = read_record(Trial, data)
        return attrs.evolve(trial, sample=trial.sample.as_had(trial.transcript))
    given = {"sample": sample(told.sample).as_had(told.transcript), "characteristics": characteristics(told.agent)}
    return Trial(**{**msgspec.structs.asdict(told), **given})


def score_line(line: ScoreLine) -> bytes:
    """Write a score."""
    # Field by field, as is `read_score`: a loop over names doubles what a score costs here.
    return dump(
        {
            "trial": line.trial,
            "sample": line.sample,
            "agent": line.agent,
            "condition": line.condition,
            "repetition": line.repetition,
            "metric": line.metric,
            "judge": line.judge,
            "value": line.score.value,
            "neutral": line.score.neutral,
            "reason": line.score.reason,
            "details": line.score.details,
            "failure": line.failure,
            "judgement": line.judgement,
            "digest": line.digest,
        }
    )


def read_score(line: bytes) -> ScoreLine:
    """Read a line of scores.jsonl. Raises LookupError, TypeError or ValueError."""
    try:
        told = _SCORE_LINE.decode(line)
        read = ScoreLine(
            trial=told.trial,
            sample=told.sample,
            agent=told.agent,
            condition=told.condition,
            repetition=told.repetition,
            metric=told.metric,
            judge=told.judge,
            score=Score(told.value, told.reason, told.neutral, told.details),
            failure=told.failure,
            judgement=told.judgement,
            digest=told.digest,
        )
    except ValueError:
        data = {"judge": None, **orjson.loads(line)}
        score = {name: data.pop(name) for name in ("value", "reason", "neutral", "details") if name in data}
        read = read_record(ScoreLine, {**data, "score": read_record(Score, score)})
    if abs(read.score.value or 0.0) > LARGEST:
        raise ValueError(f"no scorer gives a score of {read.score.value:g}")
    return read


def _plain(value: Any) -> Any:
    """Return a JSON value for a value of another type that an adapter or metric put into a record."""
    if attrs.has(type(value)):
        return fields_of(value)
    return list(value) if isinstance(value, tuple | set | frozenset) else str(value)


def _encodable(data: Any, depth: int = 0) -> Any:
    if attrs.has(type(data)):
        data = fields_of(data)
    if isinstance(data, str):
        return data.encode("utf-8", "replace").decode("utf-8")
    if depth > _DEEPEST:
        return "[nested too deeply to be kept]"
    if isinstance(data, Mapping):
        return {_encodable(key): _encodable(value, depth + 1) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_encodable(item, depth + 1) for item in data]
    # orjson writes integers of 64 bits only.
    if isinstance(data, int) and not -(2**63) <= data < 2**64:
        return str(data)
    return data


def to_plain(value: Any) -> Any:
    """Return a record, with the records in it, as JSON gives it back. The open end of a scale is `None`."""
    return orjson.loads(dump(value))


def to_json(record: Any) -> bytes:
    """Return a record as indented JSON that ends in a newline."""
    return orjson.dumps(to_plain(record), option=orjson.OPT_INDENT_2) + b"\n"


def from_plain(cls: type[T], data: Any, path: Path, remedy: str = "restore the file") -> T:
    """Structure plain data into a record. Raises RunError with the file, the first error and the number of others."""
    record, errors = structure(cls, data, (), Path(), variables=False, strict=False)
    if record is None:
        first = errors[0]
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        where = ".".join(map(str, first.path))
        raise RunError(f"{path} is damaged: {where + ': ' if where else ''}{first.message}{more}; {remedy}")
    return record


def read_manifest(path: Path) -> Manifest:
    """Read what a run was made of. Raises RunError."""
    data = read_json(path)
    if not isinstance(data, dict):
        raise RunError(f"{path} is no manifest")
    if data.get("format") != FORMAT:
        raise RunError(
            f"{path} has format {data.get('format')}, and this version of keval reads format {FORMAT} only;"
            " use the version that made the run, or run the evaluation again"
        )
    return _consistent(from_plain(Manifest, data, path), path)


def _consistent(manifest: Manifest, path: Path) -> Manifest:
    """Return a manifest whose parts refer to each other, with what is read of its config. Raises RunError."""
    execution = manifest.config.get("execution")
    # By `type`, as `True` is an `int` to `isinstance`.
    if not isinstance(execution, dict | None) or type((execution or {}).get("num_repetitions", 1)) is not int:
        raise RunError(f"{path} is damaged: config.execution has no number of repetitions; restore the file")
    if not manifest.evaluation.strip():
        raise RunError(f"{path} is damaged: the evaluation has no name; restore the file")
    lacking = [*_absent(manifest.config, "agents", manifest.agents)]
    lacking += _absent(manifest.config, "conditions", manifest.conditions)
    lacking += [f"no condition {manifest.baseline!r}"] if manifest.baseline not in manifest.conditions else []
    for entry in manifest.scorers:
        if entry.judge is not None and entry.judge not in manifest.judges:
            lacking.append(f"no judge {entry.judge!r}")
        if (entry.rubric is not None or entry.judge is not None) and entry.rubric not in manifest.rubrics:
            lacking.append(f"no rubric {entry.rubric!r}")
    if lacking:
        raise RunError(f"{path} is damaged: it has {lacking[0]}, which it refers to; restore the file")
    return manifest


def _absent(config: Mapping[str, Any], section: str, labels: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a manifest's config lacks of the agents or conditions that the run had."""
    given = config.get(section)
    for label in labels:
        # A condition may be empty.
        found = given.get(label, ...) if isinstance(given, dict) else ...
        if not (isinstance(found, dict) or (found is None and section == "conditions")):
            yield f"no config.{section}.{label}"
