"""Structuring plain data into attrs classes, strictly, with every problem at its path."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

import attrs
import cattrs
from cattrs.cols import list_structure_factory, mapping_structure_factory
from cattrs.errors import (
    AttributeValidationNote,
    BaseValidationError,
    ClassValidationError,
    ForbiddenExtraKeysError,
    IterableValidationError,
)
from cattrs.gen import make_dict_structure_fn

from keval.config.source import KeyPath
from keval.config.variables import Interpolated, hide_values, interpolate
from keval.errors import FieldError, PluginError, suggestion
from keval.records.models import Model
from keval.records.scores import Scale
from keval.seams import registry
from keval.seams.remedies import remedy


@cache
def provider_of(name: str) -> str | None:
    """Return the model provider that a name such as `gpt-4o` belongs to, by the families that providers declare."""
    for component in registry.components("keval.models"):
        try:
            provider = registry.load(component)()
        except (PluginError, TypeError):  # a broken provider breaks only the runs that name it
            continue
        if any(name.startswith(family) for family in getattr(provider, "families", ())):
            return component.name
    return None


def read_model(text: str) -> Model:
    """Read `provider/name`, or a name alone that belongs to the family of a vendor. Raises ValueError."""
    provider = None if "/" in text else provider_of(text)
    return Model.parse(f"{provider}/{text}" if provider else text)


UNIONS: tuple[Any, ...] = (Union, UnionType)
SEQUENCES: tuple[Any, ...] = (tuple, list, Sequence)
MAPPINGS: tuple[Any, ...] = (dict, Mapping)
"""The origins of types that are read as unions, lists and mappings."""


def field_errors(error: Exception, path: KeyPath, cls: Any) -> Iterator[FieldError]:
    """Unfold the converter's error tree; `cls` is the class that the data at `path` was structured into."""
    if isinstance(error, ClassValidationError | IterableValidationError):
        noted, others = error.group_exceptions()
        for inner, note in noted:
            step = note.name if isinstance(note, AttributeValidationNote) else note.index
            # cattrs has no error of its own for a required key that is missing.
            if isinstance(inner, KeyError) and isinstance(note, AttributeValidationNote):
                yield FieldError(path, f"the key {step!r} is missing; add `{step}:` with {type_name(note.type)}")
            else:
                yield from field_errors(inner, (*path, step), note.type)
        for inner in others:
            yield from field_errors(inner, path, error.cl)
    elif isinstance(error, ForbiddenExtraKeysError):
        known = [field.name for field in attrs.fields(error.cl) if field.init]
        for key in sorted(map(str, error.extra_fields)):
            moved = getattr(error.cl, "moved_keys", {}).get(key)
            told = f"unknown key {key!r}; write {moved}" if moved else unknown_key(key, known)
            yield FieldError((*path, key), told, at_key=True)
    else:
        # attrs validators name their field first: "'days' must be >= 1: 0"
        named = re.match(r"(?:Length of )?'(\w+)' must", str(error))
        more = remedy("value", *error.about) if isinstance(error, UnfitError) and _reading.get().strict else ""
        yield FieldError((*path, named[1]) if named else path, f"{error}{more}")


def unknown_key(key: str, known: Iterable[str], beside: Mapping[str, Any] | None = None) -> str:
    """Return what to say of a key that nobody knows, of a mapping that has what stands `beside` it."""
    return f"unknown key {key!r}{remedy('key', key, beside or {}) or suggestion(key, known, 'known keys')}"


class UnfitError(TypeError):
    """A value is of another type than the one that is wanted."""

    def __init__(self, wanted: Any, value: Any) -> None:
        super().__init__(f"expected {type_name(wanted)}, got {shown(value)}")
        self.about = wanted, value


def shown(value: Any) -> str:
    """Show a value within a message; one that came out of a variable, as it is written."""
    if isinstance(value, Interpolated) and (written := getattr(value, "written", None)) is not None:
        return f"the value of {written}"
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    if value is None:
        return "nothing"
    text = repr(str(value)) if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def type_name(wanted: Any) -> str:
    """Name a type in the words of a config's author."""
    names = {
        str: "a text", int: "a whole number", float: "a number", bool: "true or false",
        Path: "a path", Model: "a model (provider/name)", type(None): "nothing",
    }  # fmt: skip
    origin = get_origin(wanted)
    if wanted in names:
        return names[wanted]
    if origin is Literal:
        return " or ".join(map(str, get_args(wanted)))
    if origin in UNIONS:
        return " or ".join(dict.fromkeys(type_name(part) for part in get_args(wanted) if part is not type(None)))
    if origin in MAPPINGS or attrs.has(wanted):
        return "a mapping"
    if origin in SEQUENCES:
        return "a list"
    return getattr(wanted, "__name__", str(wanted))


T = TypeVar("T")


@attrs.frozen
class _Reading:
    """How data is being read: what relative paths are relative to, and whether keys may be unknown."""

    base: Path
    strict: bool


# cattrs calls a hook with a value and a type only, so this reaches `Path` and the records another way.
_reading: ContextVar[_Reading] = ContextVar("reading")

_SWITCHES = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


def structure(
    cls: type[T], data: Any, path: KeyPath, base: Path, *, variables: bool = True, strict: bool = True
) -> tuple[T | None, list[FieldError]]:
    """Structure `data`, which stands at `path`, into the attrs class `cls`.

    Relative paths are relative to `base`, and `variables` of the environment are filled in. A field with the metadata
    `unknown_keys` receives the keys that its class has no field for; without one they are errors, or left out if not
    `strict`. Returns the instance, or `None` with every error.

    Raises PluginError: the types of the class's fields cannot be resolved.
    """
    resolve_fields(cls)
    if data is None:
        data = {}
    filled, unset = interpolate(data, path) if variables else (data, [])
    token = _reading.set(_Reading(base, strict))
    try:
        if not isinstance(filled, dict):
            return None, [*field_errors(UnfitError(cls, data), path, cls)]
        record = _converter().structure(_over_defaults(cls, filled), cls)
        return None if unset else record, unset
    except ClassValidationError as error:
        # An unset variable has become an empty text, which would be reported a second time as a wrong value.
        known = {each.path for each in unset}
        errors = [each for each in field_errors(error, path, cls) if each.path not in known]
        if variables:
            errors = [each._replace(message=hide_values(each.message, data)) for each in errors]
        return None, [*unset, *errors]
    finally:
        _reading.reset(token)


def resolve_fields(cls: type) -> None:
    """Resolve annotations that are texts. Those of private fields may stay unresolved. Raises PluginError."""
    unknown: dict[str, Any] = {}
    options = [str(field.type) for field in attrs.fields(cls) if field.init]
    # attrs resolves all annotations of a class or none: each round stands in for one more name that is unknown.
    while True:
        try:
            attrs.resolve_types(cls, localns=unknown)
        except NameError as error:
            name = error.name or ""
            if name in unknown or any(re.search(rf"\b{name}\b", option) for option in options):
                raise PluginError(
                    f"the options of {cls.__module__}.{cls.__qualname__} cannot be read: {error};"
                    " import what its fields are annotated with outside of TYPE_CHECKING"
                ) from error
            unknown[name] = Any
        else:
            return


def options_class(group: str, name: str) -> type | None:
    """Return the attrs class of a plugin, whose fields are its options; `None` if it has none, or is not there."""
    try:
        target = registry.load(registry.find(group, name))
    except PluginError:  # which is reported where the plugin is constructed
        return None
    return target if isinstance(target, type) and attrs.has(target) else None


def _over_defaults(cls: type, data: dict[str, Any]) -> dict[str, Any]:
    """Complete data by the class's defaults: single keys of a nested record, paths, and the provider of a model.

    A path by default is relative to the config, as one that is written.
    """
    merged = dict(data)
    for field in attrs.fields(cls):
        given = data.get(field.name)
        if isinstance(given, dict) and attrs.has(type(field.default)):
            merged[field.name] = {**attrs.asdict(field.default), **given}
        elif given is None and field.init and isinstance(field.default, Path):
            merged[field.name] = str(field.default)
        elif isinstance(given, str) and given and "/" not in given and "provider" in field.metadata:
            merged[field.name] = f"{provider_of(given) or field.metadata['provider']}/{given}"
    return merged


@cache
def _converter() -> cattrs.Converter:
    """The one converter: a class is compiled when it is first met, which costs more than structuring many records."""
    converter = cattrs.Converter(forbid_extra_keys=True, detailed_validation=True)
    converter.register_structure_hook(str, _exactly(str, str))
    converter.register_structure_hook(int, _exactly(int, int))
    converter.register_structure_hook(float, _exactly(float, float))
    converter.register_structure_hook(bool, _exactly(bool, lambda text: _SWITCHES[text.lower()]))
    converter.register_structure_hook(Path, lambda value, _: _reading.get().base / _text(value, Path))
    converter.register_structure_hook(Model, lambda value, _: read_model(_text(value, Model)))
    converter.register_structure_hook_func(lambda wanted: wanted is Any, lambda value, _: value)
    converter.register_structure_hook_func(_has_origin(Literal), _one_of)
    converter.register_structure_hook_factory(_is_record, _record)
    converter.register_structure_hook_factory(_has_origin(*UNIONS), _union)
    converter.register_structure_hook_factory(_has_origin(*SEQUENCES), _sequence)
    converter.register_structure_hook_factory(_has_origin(*MAPPINGS), _mapping)
    return converter


Hook = Callable[[Any, Any], Any]


def _has_origin(*origins: Any) -> Callable[[Any], bool]:
    return lambda wanted: get_origin(wanted) in origins


def _is_record(wanted: Any) -> bool:
    return isinstance(wanted, type) and attrs.has(wanted) and wanted is not Model


def _record(wanted: Any, converter: cattrs.Converter) -> Hook:
    resolve_fields(wanted)
    fill = make_dict_structure_fn(wanted, converter, _cattrs_forbid_extra_keys=True, _cattrs_detailed_validation=True)
    known = {field.name for field in attrs.fields(wanted) if field.init}
    rest = next((field.name for field in attrs.fields(wanted) if field.metadata.get("unknown_keys")), None)

    def hook(value: Any, _: Any) -> Any:
        # YAML reads a key with nothing below it as None, which is meant as an empty mapping.
        if not isinstance(value, dict | None):
            raise UnfitError(wanted, value)
        given = value or {}
        if wanted is Scale and given.get("high", math.inf) is None:  # JSON has no infinity
            given = {**given, "high": math.inf}
        if rest is not None:
            given = {rest: {k: v for k, v in given.items() if k not in known}, **_only(given, known - {rest})}
        elif not _reading.get().strict:
            given = _only(given, known)
        return fill(given, wanted)

    return hook


def _only(data: dict[str, Any], keys: set[str]) -> dict[str, Any]:
    return {key: value for key, value in data.items() if key in keys}


def _exactly(kind: type, read: Callable[[str], Any]) -> Hook:
    def hook(value: Any, _: Any) -> Any:
        if isinstance(value, Interpolated) and kind is not str:
            try:
                return read(value)
            except (KeyError, ValueError):
                raise UnfitError(kind, value) from None
        # bool is a subclass of int, and `yes` must not be read as 1.
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            return float(value)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise UnfitError(kind, value)
        return str(value) if kind is str else value

    return hook


def _text(value: Any, wanted: Any) -> str:
    if not isinstance(value, str):
        raise UnfitError(wanted, value)
    return value


def _one_of(value: Any, wanted: Any) -> Any:
    choices = get_args(wanted)
    if value not in choices:
        near = suggestion(str(value), map(str, choices))
        raise ValueError(f"expected {type_name(wanted)}, got {shown(value)}{near}")
    return value


def _union(wanted: Any, converter: cattrs.Converter) -> Hook:
    parts = [part for part in get_args(wanted) if part is not type(None)]
    nested = [part for part in parts if attrs.has(part) and part is not Model]

    def hook(value: Any, _: Any) -> Any:
        if value is None and type(None) in get_args(wanted):
            return None
        hooks = [(part, converter.get_structure_hook(part)) for part in parts]  # not before they are needed
        if len(hooks) == 1:
            return hooks[0][1](value, hooks[0][0])
        if isinstance(value, dict) and nested:
            # The record with most of the keys is the one that is meant, so the errors are those of that record.
            chosen = max(nested, key=lambda part: len({field.name for field in attrs.fields(part)} & {*value}))
            return converter.get_structure_hook(chosen)(value, chosen)
        for part, structure_part in hooks:
            try:
                return structure_part(value, part)
            except (TypeError, ValueError, BaseValidationError):
                continue
        raise UnfitError(wanted, value)

    return hook


def _sequence(wanted: Any, converter: cattrs.Converter) -> Hook:
    kind = list if get_origin(wanted) is list else tuple
    items = get_args(wanted)
    size = len(items) if kind is tuple and get_origin(wanted) is tuple and ... not in items else None
    fill = list_structure_factory(wanted, converter)

    def hook(value: Any, _: Any) -> Any:
        if not isinstance(value, list | tuple):  # which defaults are
            raise UnfitError(wanted, value)
        if size is not None and len(value) != size:
            raise ValueError(f"expected a list of {size}, got {shown(value)}")
        return kind(fill(value, wanted))

    return hook


def _mapping(wanted: Any, converter: cattrs.Converter) -> Hook:
    # Keys come as texts: `Source` keeps them as they are written, and JSON has no others.
    has_whole_keys = int in get_args(wanted)[:1]
    fill = mapping_structure_factory(wanted, converter, key_type=Any)

    def hook(value: Any, _: Any) -> Any:
        if not isinstance(value, dict):
            raise UnfitError(wanted, value)
        filled = fill(value, wanted)
        if not has_whole_keys:
            return filled
        try:
            whole = {int(name): each for name, each in filled.items()}
        except ValueError:
            raise TypeError(f"expected whole numbers as keys, got {', '.join(map(repr, value))}") from None
        if len(whole) < len(filled):
            raise TypeError(f"two of the keys {', '.join(map(repr, value))} are the same whole number; keep one")
        return whole

    return hook
