"""Schemas: a JSON Schema checked once, that asserts something and refers to nothing outside itself."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from keval_metrics_basic.bounded import bounded
from keval_metrics_basic.evidence import excerpt, listed

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

__all__ = ["SchemaMisfitError", "compiled"]

_PATTERNS = '"patternProperties"'


class SchemaMisfitError(ValueError):
    """What was given as a schema is none, or cannot be used."""


def compiled(schema: Mapping[str, Any]) -> Validator:
    """Return a validator of a schema, by its `$schema` or for draft 2020-12. Raises SchemaMisfitError."""
    try:
        return _compiled(json.dumps(schema))
    except SchemaMisfitError:
        raise
    except RecursionError as error:
        raise SchemaMisfitError("it is nested too deeply") from error
    except (TypeError, ValueError) as error:
        raise SchemaMisfitError(f"it cannot be used: {excerpt(str(error), 200)}") from error


@lru_cache(maxsize=128)
def _compiled(text: str) -> Validator:
    # These take 40 ms, which only this metric needs.
    from jsonschema import Draft202012Validator, FormatChecker, SchemaError
    from jsonschema.validators import validator_for
    from referencing import Registry, Resource
    from referencing.jsonschema import DRAFT202012

    schema = json.loads(text)
    latest: Any = Draft202012Validator
    dialect = schema.get("$schema", latest.META_SCHEMA["$schema"])
    chosen: Any = validator_for({"$schema": dialect}, default=latest) if isinstance(dialect, str) else latest
    if chosen.META_SCHEMA["$schema"].rstrip("#") != str(dialect).rstrip("#"):
        raise SchemaMisfitError(f"its $schema {excerpt(str(dialect))!r} is no known draft of JSON Schema")
    if schema and not schema.keys() & chosen.VALIDATORS.keys():
        raise SchemaMisfitError(f"it checks nothing, having only {listed(map(excerpt, schema))}")
    try:
        chosen.check_schema(schema, format_checker=FormatChecker(["regex"]))
    except SchemaError as error:
        raise SchemaMisfitError(f"at {error.json_path}: {excerpt(error.message, 200)}") from error
    # An empty registry fetches nothing, where jsonschema's own asks the network.
    registry: Registry[Any] = Registry()
    resource = Resource.from_contents(schema, default_specification=DRAFT202012)
    for reference in _lost_references(resource, registry.resolver_with_root(resource)):
        raise SchemaMisfitError(
            f"it refers to {excerpt(reference)!r}, which it does not hold; put that under $defs, as nothing is fetched"
        )
    if "unevaluatedProperties" in chosen.VALIDATORS and '"unevaluatedProperties"' in text and _PATTERNS in text:
        raise SchemaMisfitError("it has both patternProperties and unevaluatedProperties; write additionalProperties")
    # With `$schema` a part that refers to the whole would be checked by the draft's own class, without a time limit.
    whole = {name: part for name, part in schema.items() if name != "$schema"}
    validator: Validator = bounded(chosen)(whole, registry=registry)
    return validator


def _lost_references(resource: Any, resolver: Any) -> Iterator[str]:
    """Yield each reference of a schema and its parts that leads nowhere."""
    from referencing.exceptions import Unresolvable

    inside = resolver.in_subresource(resource)
    if isinstance(resource.contents, Mapping):
        for keyword in ("$ref", "$dynamicRef", "$recursiveRef"):
            reference = resource.contents.get(keyword)
            if isinstance(reference, str):
                try:
                    inside.lookup(reference)
                except Unresolvable:
                    yield reference
    for part in resource.subresources():
        yield from _lost_references(part, inside)
