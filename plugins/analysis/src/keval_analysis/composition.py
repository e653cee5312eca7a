"""What a run was made of, part by part, and in which parts it differs from another run."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import attrs

from keval.records.manifest import Manifest
from keval.store.run import Run
from keval.store.serialization import dump
from keval_analysis.stats.contrasts import made_conditions, section_of
from keval_analysis.texts import Texts, diff_of, leaves, needs_diff, texts_of

Parts: TypeAlias = Mapping[str, Mapping[str, str]]
"""What a run was made of: by kind, the most important first, the name of each part and what it is.

A kind that has one part only gives it an empty name. What is not set is left out.
"""

_SHOWN = 12
"""Characters of a digest that are told."""
_TOLD_BY_OTHER_KINDS: Mapping[str, tuple[str, ...]] = {
    "dataset": ("path",),
    "agents": ("model",),
    "judges": ("model",),
    "conditions": ("system_prompt", "contexts"),
}
"""Keys of a section, or of its entries, of which another kind of part tells."""
_NO_OPTIONS = (
    *("name", "version", "description", "metrics", "rubrics", "neutral", "execution", "budget", "ablate"),
    *("ablated", "against", "not_run"),
)
"""Sections of a config that change no trial, or that other kinds tell of."""
_OF_A_WHOLE: Mapping[str, Sequence[str]] = {
    "agent": ("model of agent", "answers of agent"),
    "condition": (
        *("prompt of", "contexts of", "tools of", "listing of", "parts of"),
        *("instructions of", "text of", "description of", "definition of"),
    ),
}
"""Kinds of parts that belong to an agent, or to a condition."""


TEXTS = ("prompt of", "instructions of", "text of", "description of", "definition of")
"""Kinds of parts that are texts, which a model gets."""


@attrs.frozen
class Difference:
    """Something else than its answers in which a run differs from another: what, and how it is in each.

    `diff` has the lines in which long texts differ, as `diff_of` returns them.
    """

    what: str
    now: str
    before: str
    diff: tuple[str, ...] = attrs.field(default=(), metadata={"sparse": True})


@attrs.frozen
class PartChange:
    """A part in which a run differs from another; `None` where one of them has no such part."""

    kind: str
    name: str
    now: str | None
    before: str | None


def parts_of(manifest: Manifest, labels: Mapping[str, str] | None = None, texts: Texts | None = None) -> Parts:
    """Return what a run was made of.

    `labels` names the agents that count, each with what to call it; without it, all do, by their own labels. Without
    the `texts` of the run, their digests stand for them.
    """
    named = {label: label for label in manifest.agents} if labels is None else labels
    agents = {named[label]: entry for label, entry in manifest.agents.items() if label in named}
    conditions, dataset = manifest.conditions, manifest.dataset
    written = {name: section_of(manifest.config, name) for name in ("agents", "conditions")}
    written["agents"] = {named[label]: each for label, each in written["agents"].items() if label in named}
    made = made_conditions(manifest)
    # Contexts that `ablate` and `--against` made are no part of what somebody wrote.
    own = {label: entry for label, entry in conditions.items() if label not in made}
    config = {**manifest.config, **written, "contexts": used_contexts(attrs.evolve(manifest, conditions=own))}
    servers = {f"{name} under {of}": each for of, entry in conditions.items() for name, each in entry.servers.items()}
    listed = texts["instructions of"] if texts else {}
    given = {f"{name} under {of}": each for of, entry in conditions.items() for name, each in entry.texts.items()}
    found: dict[str, Mapping[str, object]] = {
        "evaluation": {"": manifest.evaluation},
        "dataset": {"": _digest(dataset.sha256)},
        "samples": {"": dataset.samples},
        "agent": dict.fromkeys(agents, "there"),
        "model of agent": {label: entry.model for label, entry in agents.items()},
        "answers of agent": {label: _digest(entry.recording) for label, entry in agents.items()},
        "file of": {
            f"{label}: {name}": _digest(sha256)
            for label, entry in agents.items()
            for name, sha256 in entry.files.items()
        },
        "condition": dict.fromkeys(conditions, "there"),
        "prompt of": {label: section_of(written["conditions"], label).get("system_prompt") for label in conditions},
        "contexts of": {label: ", ".join(entry.contexts) for label, entry in conditions.items()},
        "tools of": {
            name: ", ".join(server.tools) + ("" if name in listed else f" ({_digest(server.sha256)})")
            for name, server in servers.items()
        },
        "parts of": {name: f"{', '.join(text.parts)} ({_digest(text.sha256)})" for name, text in given.items()},
        **(texts or {"listing of": {name: _digest(server.listing) for name, server in servers.items()}}),
        "model of judge": {label: entry.model for label, entry in manifest.judges.items()},
        "version of scorer": {
            f"{each.metric} by {each.judge}" if each.judge else each.metric: each.digest for each in manifest.scorers
        },
        "neutral scores": {"": manifest.neutral},
        "seed": {"": manifest.seed},
        "option": dict(_options(config)),
        "variable": manifest.variables,
        "execution": dict(leaves("", config.get("execution"))),
        "version of": manifest.versions,
    }
    return {kind: {name: text for name, value in of.items() if (text := _text(value))} for kind, of in found.items()}


def changed_parts(now: Parts, before: Parts) -> Iterator[PartChange]:
    """Yield the parts in which a run differs from another, the most important first.

    Of an agent or a condition that only one of them has, nothing else is told.
    """
    alone: dict[str, Collection[str]] = {}
    for whole, kinds in _OF_A_WHOLE.items():
        alone |= dict.fromkeys(kinds, now.get(whole, {}).keys() ^ before.get(whole, {}).keys())
    tools, definitions, texts = (
        [of.get(kind, {}) for of in (now, before)] for kind in ("tools of", "definition of", "text of")
    )
    # The names of tools and parts tell which are new, and their digests nothing that their words do not.
    told = dict.fromkeys(("description of", "definition of"), definitions[0].keys() ^ definitions[1].keys())
    told["text of"] = texts[0].keys() ^ texts[1].keys()
    told["listing of"] = {name for name, _ in tools[0].items() ^ tools[1].items()}
    changed = {name for name, _ in texts[0].items() ^ texts[1].items()}
    of_contexts = (
        {name.partition(" of ")[2] for name in names} for names in (changed - told["text of"], told["text of"])
    )
    told["parts of"] = next(of_contexts) - next(of_contexts)
    for kind, ours in now.items():
        theirs = before.get(kind, {})
        for name in dict.fromkeys((*ours, *theirs)):
            if ours.get(name) == theirs.get(name) or name in told.get(kind, ()):
                continue
            # The name of what a server has ends with its condition; see `parts_of`.
            if name.rpartition(" under ")[2] not in alone.get(kind, ()):
                yield PartChange(kind, name, ours.get(name), theirs.get(name))


def what_differs(now: Run, before: Run, agents: Mapping[str, str]) -> Iterator[Difference]:
    """Yield what else differs between two runs, the most important first.

    `agents` are those of the run that are compared, each with the one of the other. Where they have other names, no
    other agents count. Raises RunError.
    """
    yield from (Difference("agent", agent, other) for agent, other in agents.items() if agent != other)
    ours, theirs = None, None
    if any(agent != other for agent, other in agents.items()):
        ours, theirs = {agent: agent for agent in agents}, {other: agent for agent, other in agents.items()}
    sides = (parts_of(run.manifest, labels, texts_of(run)) for run, labels in ((now, ours), (before, theirs)))
    for each in changed_parts(*sides):
        was, is_now, diff = each.before or "", each.now or "", tuple[str, ...]()
        if each.kind in TEXTS and needs_diff(was, is_now):
            # The lines of a definition have their paths, so that they need none around them.
            diff = diff_of(was, is_now, around=int(each.kind != "definition of"))
        elif each.kind == "tools of" and was and is_now and not (was + is_now).endswith(")"):
            diff = diff_of(was.replace(", ", "\n"), is_now.replace(", ", "\n"), around=0)
        yield Difference(f"{each.kind} {each.name}".rstrip(), is_now or "none", was or "none", diff)


def used_contexts(manifest: Manifest) -> dict[str, Any]:
    """Return the contexts of the run's conditions, and those that they are made from, as the config has them."""
    contexts = section_of(manifest.config, "contexts")
    left = [label for condition in manifest.conditions.values() for label in condition.contexts]
    used: dict[str, Any] = {}
    while left:
        label = left.pop()
        if label in contexts and label not in used:
            used[label] = contexts[label]
            if isinstance(used[label], dict) and isinstance(base := used[label].get("from"), str):
                left.append(base)
    return used


def _options(config: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    """Yield what a config sets that no other kind of part tells of, each value at its path."""
    for name, section in config.items():
        if name not in _NO_OPTIONS:
            told = _TOLD_BY_OTHER_KINDS.get(name, ())
            yield from (leaf for leaf in leaves(name, section) if leaf[0].rpartition(".")[2] not in told)


def _text(value: object) -> str:
    """Return what a part is as text; an empty one if nothing is set."""
    if isinstance(value, str):
        return value
    return "" if value is None or value == [] else dump(value).decode()


def _digest(sha256: str | None) -> str | None:
    return sha256[:_SHOWN] if sha256 else None
