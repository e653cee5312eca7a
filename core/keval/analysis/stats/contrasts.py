"""Which conditions of a run differ in one thing that an intervention changed, found in its manifest."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from keval.findings.effects import Contrast, ContrastKind
from keval.records.manifest import ConditionEntry, Manifest, ServerEntry

_Changes = dict[str, list[Mapping[str, Any]]]


def ablated(manifest: Manifest) -> Mapping[str, Mapping[str, str]]:
    """Return the conditions that `ablate` made: by the condition that they are of, and the tool that is left out."""
    found = manifest.config.get("ablated")
    return found if isinstance(found, Mapping) else {}


def contrasts_of(manifest: Manifest) -> list[Contrast]:
    """Return each condition that was changed from another one, with the nearest such; there are no effects in it yet.

    Both have the same prompt and options and the same servers, of which one has all interventions that the other has,
    and then more.
    """
    made = {label: (of, tool) for of, tools in ablated(manifest).items() for tool, label in tools.items()}
    found: list[Contrast] = []
    for label, entry in manifest.conditions.items():
        if label in made and made[label][0] in manifest.conditions:
            of, tool = made[label]
            added = _added(entry, manifest.conditions[of]) or {}
            found.append(Contrast("ablation", label, of, added, tool, added=True))
        elif label not in made:
            found += _nearest(manifest, label, made.keys())
    return found


def _nearest(manifest: Manifest, label: str, made: Collection[str]) -> Iterator[Contrast]:
    """Yield the contrast to the condition that is most alike, if there is one."""
    entry = manifest.conditions[label]
    best: tuple[int, str, _Changes] | None = None
    for other, base in manifest.conditions.items():
        if other == label or other in made or _rest(manifest, other) != _rest(manifest, label):
            continue
        added = _added(entry, base)
        if added:
            shared = sum(len(server.interventions) for server in base.servers.values())
            if best is None or shared > best[0]:
                best = (shared, other, added)
    if best is not None:
        _, against, added = best
        kind, tool = _kind(entry, manifest.conditions[against], added)
        yield Contrast(kind, label, against, added, tool)


def _rest(manifest: Manifest, label: str) -> dict[str, Any]:
    """Return what the config says of a condition besides its contexts."""
    written = manifest.config.get("conditions")
    found = written.get(label) if isinstance(written, Mapping) else None
    return {key: value for key, value in (found or {}).items() if key not in ("contexts", "mcp_servers")}


def _added(entry: ConditionEntry, base: ConditionEntry) -> _Changes | None:
    """Return the interventions that a condition adds to another one's, by server; `None` if it is no such condition."""
    if entry.servers.keys() != base.servers.keys():
        return None
    added: _Changes = {}
    for name, server in entry.servers.items():
        before = base.servers[name]
        count = len(before.interventions)
        if _original(server) != _original(before) or _plain(server.interventions[:count]) != _plain(
            before.interventions
        ):
            return None
        if more := list(server.interventions[count:]):
            added[name] = more
    return added


def _original(server: ServerEntry) -> str | None:
    """Return the digest of what the server itself lists."""
    return server.original_sha256 or server.sha256


def _kind(entry: ConditionEntry, base: ConditionEntry, added: _Changes) -> tuple[ContrastKind, str | None]:
    keys = {key for changes in added.values() for change in changes for key in change}
    if keys == {"results"}:
        return "placebo", None
    if keys <= {"without", "tools"}:
        gone = [
            tool
            for name, server in base.servers.items()
            for tool in server.tools
            if tool not in entry.servers[name].tools
        ]
        if len(gone) == 1:
            return "ablation", gone[0]
    return "change", None


def _plain(value: Any) -> Any:
    """Return a value as JSON gives it back, so that a tuple equals the list that was read."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value
