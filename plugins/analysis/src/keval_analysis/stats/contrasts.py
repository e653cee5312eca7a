"""Which conditions of a run differ in one thing that an intervention changed, found in its manifest."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import attrs

from keval.records.manifest import ConditionEntry, Manifest
from keval_analysis.findings.effects import Contrast, Part

_Changes = dict[str, list[Mapping[str, Any]]]


def ablated(manifest: Manifest) -> Mapping[str, Mapping[str, str]]:
    """Return the conditions that `ablate` made: by the condition that they are of, and the part that is left out."""
    return section_of(manifest.config, "ablated")


def revisions(manifest: Manifest) -> Mapping[str, str]:
    """Return the conditions that `--against` made, each by the condition that it was at another commit."""
    return section_of(section_of(manifest.config, "against"), "arms")


def made_conditions(manifest: Manifest) -> set[str]:
    """Return the conditions that `ablate` and `--against` made, which are compared with one other only."""
    return {*revisions(manifest).values()}.union(*(parts.values() for parts in ablated(manifest).values()))


def section_of(config: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return a section of a config, or of a section; an empty one if it is none."""
    found = config.get(name)
    return found if isinstance(found, Mapping) else {}


def contrasts_of(manifest: Manifest) -> list[Contrast]:
    """Return each condition that was changed from another one, with the nearest such; there are no effects in it yet.

    Both have the same prompt and options and the same servers and texts, of which one has all interventions that the
    other has, and then more.
    """
    made = {label: (of, name) for of, parts in ablated(manifest).items() for name, label in parts.items()}
    found: list[Contrast] = []
    bases = revisions(manifest)
    differing = section_of(section_of(manifest.config, "against"), "changed")
    for label, entry in manifest.conditions.items():
        if bases.get(label) in manifest.conditions:
            changes = {label: [{"files": [*differing.get(label, ())]}]}
            found.append(Contrast("revision", label, bases[label], changes))
        # A flag may have left out the condition that the part is missing from.
        if label in made and made[label][0] in manifest.conditions:
            of, name = made[label]
            base = manifest.conditions[of]
            # A context whose only part is left out is gone as a whole, which is no intervention.
            added = _added(manifest, entry, base) or {}
            found.append(Contrast("ablation", label, of, added, name, _part(base, name), added=True))
        elif label not in made and label not in bases.values():
            found += _nearest(manifest, label, {*made, *bases.values()})
    return found


def _nearest(manifest: Manifest, label: str, made: Collection[str]) -> Iterator[Contrast]:
    """Yield the contrast to the condition that is most alike, if there is one."""
    entry = manifest.conditions[label]
    best: tuple[int, str, _Changes] | None = None
    for other, base in manifest.conditions.items():
        if other == label or other in made or _rest(manifest, other) != _rest(manifest, label):
            continue
        added = _added(manifest, entry, base)
        if added:
            shared = sum(len(each.interventions) for each in _changeable(manifest, base).values())
            if best is None or shared > best[0]:
                best = (shared, other, added)
    if best is not None:
        _, against, added = best
        yield _contrast(manifest, label, against, added)


def _rest(manifest: Manifest, label: str) -> dict[str, Any]:
    """Return what the config says of a condition besides its contexts."""
    found = section_of(section_of(manifest.config, "conditions"), label)
    return {key: value for key, value in found.items() if key not in ("contexts", "mcp_servers")}


@attrs.frozen
class _Changeable:
    """A server or a context of texts: the digest of what it gives unchanged, and what the config changes."""

    original: str | None
    interventions: Sequence[Mapping[str, Any]]


def _changeable(manifest: Manifest, entry: ConditionEntry) -> dict[str, _Changeable]:
    """Return the servers of a condition by name, and its texts by the label of the context that they derive from."""
    found = {
        # A server without interventions is its own original, and the manifest does not repeat the digest.
        name: _Changeable(server.original_sha256 or server.sha256, server.interventions)
        for name, server in entry.servers.items()
        if name not in entry.texts  # a server that hands out the texts is none besides them
    }
    texts = {_source(manifest, label): _Changeable(None, text.interventions) for label, text in entry.texts.items()}
    return found | texts


def _source(manifest: Manifest, label: str) -> str:
    """Return the label of the context that a context derives from in the end; its own, if from none.

    One that offers a server's skills derives from none: it is a text beside the server.
    """
    written, seen = section_of(manifest.config, "contexts"), {label}
    while isinstance(base := (entry := section_of(written, label)).get("from"), str) and base not in seen:
        if entry.get("offer") == "skills":
            break
        seen.add(label := base)
    return label


def _added(manifest: Manifest, entry: ConditionEntry, base: ConditionEntry) -> _Changes | None:
    """Return the interventions that a condition adds to another one's; `None` if it is no such condition.

    They are by server, or by context of texts.
    """
    ours, theirs = _changeable(manifest, entry), _changeable(manifest, base)
    if ours.keys() != theirs.keys():
        return None
    added: _Changes = {}
    for name, now in ours.items():
        before = theirs[name]
        count = len(before.interventions)
        if now.original != before.original or _plain(now.interventions[:count]) != _plain(before.interventions):
            return None
        if more := list(now.interventions[count:]):
            added[name] = more
    return added


def _contrast(manifest: Manifest, label: str, against: str, added: _Changes) -> Contrast:
    entry, base = manifest.conditions[label], manifest.conditions[against]
    keys = {key for changes in added.values() for change in changes for key in change}
    # Tools and descriptions are the same, and only what they return, or what a text says, is another.
    if keys <= {"results", "text"}:
        return Contrast("placebo", label, against, added)
    if keys <= {"without", "tools"}:
        left = {part for text in entry.texts.values() for part in text.parts}
        gone = [part for text in base.texts.values() for part in text.parts if part not in left]
        gone += [
            tool
            for name, server in base.servers.items()
            if name not in base.texts
            for tool in server.tools
            if tool not in entry.servers[name].tools
        ]
        if len(gone) == 1:
            return Contrast("ablation", label, against, added, gone[0], _part(base, gone[0]))
    return Contrast("change", label, against, added)


def _part(base: ConditionEntry, name: str) -> Part:
    """Return what kind of part a condition lacks; `name` has its context before it where several have one of it."""
    for label, text in base.texts.items():
        if name in text.parts or name.removeprefix(f"{label}__") in text.parts:
            return "skill" if text.part == "skill" else "section"
    return "tool"


def _plain(value: Any) -> Any:
    """Return a value as JSON gives it back, so that a tuple equals the list that was read."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value
