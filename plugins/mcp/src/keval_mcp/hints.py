"""Trying `readOnlyHint`: trials share a server by its hints only if equal calls of its tools give equal results."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from typing import Any

import attrs
from mcp import MCPError

from keval.errors import ServerLostError
from keval.records.servers import Sharing
from keval.seams.contexts import ServerSpec
from keval_mcp.schemas import fit, referred
from keval_mcp.server.connection import ServerConnection, Starter
from keval_mcp.server.upstream import CallTimeoutError, Upstream

SECONDS = 5.0
"""How long all calls of one process, or in one session, may take."""
_MOST = 300
"""Parts of a schema that are looked at, as it can refer to itself, and the items of a list."""
_UNTRIED = "readOnlyHint could not be tried"


class _DoubtError(Exception):
    """The hints are not to be trusted; the message says why."""


class _NoExampleError(Exception):
    """A schema has no example of a value; the message names the property, if it is of one."""


async def sharing_by_hints(
    server: ServerSpec, tools: Iterable[Mapping[str, Any]], connection: ServerConnection, starter: Starter
) -> tuple[Sharing, bool]:
    """Return whether trials share a server whose `tools` are all read-only by their hints.

    Each tool is called twice by `connection`, and once in another process, or session, in the opposite order: what one
    tool changes shows in the next. All of them go first, and then all once more. With the answer comes whether
    `connection` is still unused: its process is as it came up.
    """
    # Whether sessions with a remote server are apart cannot be seen.
    is_seen = server.transport == "stdio"
    is_unused = True
    try:
        calls = [{"name": tool["name"], "arguments": _arguments(tool)} for tool in tools]
        is_unused = False
        first = await connection.upstream()
        results = await _results(first, [*calls, *calls])
        _compare(calls, results[: len(calls)], results[len(calls) :])
        async with AsyncExitStack() as stack:
            try:
                other = await stack.enter_async_context(starter.started(server, connection))
            except ServerLostError as lost:
                told = f"every tool is read-only by its hint, and no second process came up to try that: {_line(lost)}"
                return Sharing(True, told, verified=False), False
            fresh = await _results(await other.upstream(), calls[::-1])
        _compare(calls, results, fresh[::-1])
    except _DoubtError as doubt:
        return Sharing(False, str(doubt), verified=is_seen), is_unused
    except ServerLostError as lost:
        return Sharing(False, f"{_UNTRIED}: {_line(lost)}", verified=is_seen), is_unused
    return Sharing(True, "every tool is read-only, and equal calls gave equal results"), False


async def _results(upstream: Upstream, calls: Sequence[Mapping[str, Any]]) -> list[Any]:
    """Return what the calls give, one after another. Raises _DoubtError: one fails, or they take too long."""
    results: list[Any] = []
    try:
        async with asyncio.timeout(SECONDS):
            for call in calls:
                results.append(await _result(upstream, call))
    except TimeoutError:
        tool = calls[len(results)]["name"]
        raise _DoubtError(f"{_UNTRIED}: calls took more than {SECONDS:g} s, up to {tool}") from None
    return results


async def _result(upstream: Upstream, call: Mapping[str, Any]) -> Any:
    try:
        result = await upstream.call(call)
    except (MCPError, CallTimeoutError, ServerLostError, ValueError) as error:
        raise _DoubtError(f"{_UNTRIED}: {call['name']} failed: {_line(error)}") from error
    if result.get("isError") or result.get("resultType", "complete") != "complete":
        raise _DoubtError(f"{_UNTRIED}: {call['name']} failed with {call['arguments']}")
    content = [{name: value for name, value in block.items() if name != "_meta"} for block in result.get("content", [])]
    return content, result.get("structuredContent")


def _compare(calls: Sequence[Mapping[str, Any]], results: Sequence[Any], others: Sequence[Any]) -> None:
    for call, result, other in zip(calls, results, others, strict=False):
        if result != other:
            raise _DoubtError(f"equal calls of {call['name']} gave different results, despite its readOnlyHint")


def _line(error: Exception) -> str:
    return str(error).partition("\n")[0][:200]


def _arguments(tool: Mapping[str, Any]) -> Any:
    """Return arguments for a tool that its input schema gives. Raises _DoubtError: it gives none that fit."""
    schema, missing = tool["inputSchema"], ""
    for all_properties in (False, True):
        try:
            arguments = _Examples(schema, all_properties).value(schema)
        except _NoExampleError as none:
            missing = missing or str(none)
            continue
        except Exception:  # noqa: BLE001 - a schema that is none, in any way that one can be wrong
            break
        if isinstance(arguments, dict) and fit(schema, arguments):
            return arguments
    which = f"`{missing}` of {tool['name']}" if missing else tool["name"]
    raise _DoubtError(f"{_UNTRIED}: the input schema has no example for {which}; isolation: condition shares it")


@attrs.define
class _Examples:
    """Values that a schema names: examples, a default, a constant, or one of few that there are.

    `root` is what its references refer to. Properties that are not required are left out, unless `all_properties`.
    """

    root: Mapping[str, Any]
    all_properties: bool
    _left: int = attrs.field(default=_MOST, init=False)

    def value(self, schema: Any) -> Any:
        """Return a value. Raises _NoExampleError: the schema names none."""
        self._left -= 1
        if not isinstance(schema, Mapping) or self._left < 0:
            raise _NoExampleError
        for key in ("examples", "enum"):
            if isinstance(schema.get(key), list) and schema[key]:
                return schema[key][0]
        for key in ("example", "default", "const"):
            if key in schema:
                return schema[key]
        rest = {key: part for key, part in schema.items() if key not in ("$ref", "allOf", "anyOf", "oneOf")}
        if "$ref" in schema:
            return self.value(_merged(rest, [referred(self.root, schema["$ref"])]))
        if isinstance(schema.get("allOf"), list):
            others = {key: schema[key] for key in ("anyOf", "oneOf") if key in schema}
            return self.value(_merged({**rest, **others}, schema["allOf"]))
        for part in [*_listed(schema, "anyOf"), *_listed(schema, "oneOf")]:
            with suppress(_NoExampleError):
                return self.value(_merged(rest, [part]))
        kinds = schema.get("type", "object" if "properties" in schema else None)
        kinds = kinds if isinstance(kinds, list) else [kinds]
        if "null" in kinds:
            return None
        if "boolean" in kinds:
            return False
        if "object" in kinds:
            return self._object(schema)
        if "array" in kinds:
            # An empty list may ask for nothing, and so show nothing.
            return [self.value(schema.get("items"))] * min(_MOST, max(1, schema.get("minItems", 1)))
        raise _NoExampleError

    def _object(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        properties, required = schema.get("properties") or {}, _listed(schema, "required")
        made: dict[str, Any] = {}
        for name in dict.fromkeys([*required, *(properties if self.all_properties else ())]):
            try:
                made[name] = self.value(properties.get(name))
            except _NoExampleError as none:
                if name in required:
                    raise _NoExampleError(name) from none
        return made


def _listed(schema: Mapping[str, Any], key: str) -> list[Any]:
    return schema[key] if isinstance(schema.get(key), list) else []


def _merged(schema: Mapping[str, Any], parts: Iterable[Any]) -> dict[str, Any]:
    """Return a schema with parts that hold beside it."""
    merged = dict(schema)
    for part in parts:
        if isinstance(part, Mapping):
            both: dict[str, Any] = {
                "properties": {**(merged.get("properties") or {}), **(part.get("properties") or {})}
            }
            both["required"] = [*_listed(merged, "required"), *_listed(part, "required")]
            merged |= {**part, **{key: value for key, value in both.items() if value}}
    return merged
