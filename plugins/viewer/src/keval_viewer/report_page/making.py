"""How a run was made: what its conditions and agents differ in, and everything else that its manifest says."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs
from markupsafe import Markup

from keval import Manifest
from keval.plugin import ArmComparison, Report, ServerDifference, change_words, entry_text, servers_between
from keval_viewer.report_page.rendering import render
from keval_viewer.wording import word_diff


@attrs.frozen
class _Condition:
    """A condition: its prompt as lines that are the same as, or differ from, the baseline's, its contexts and tools.

    `sharing` says of each server whether trials shared it. `options` are its other options, and `contexts` those of
    each context, as written.
    """

    label: str
    baseline: bool
    same_prompt: bool
    prompt: Sequence[tuple[str, str]]
    contexts: Mapping[str, Any]
    tools: Mapping[str, Sequence[str]]
    sharing: Mapping[str, str | None]
    options: Mapping[str, Any]


def differences(report: Report) -> Markup:
    """Render what the conditions differ in: prompt, contexts, tools and words; and the agents. Raises RunError."""
    manifest = report.run.manifest
    agents = [
        (label, agent, {key: value for key, value in _options(manifest, "agents", label).items() if key != "type"})
        for label, agent in manifest.agents.items()
    ]
    changed: dict[str, list[ServerDifference]] = {}
    for each in report.server_differences:
        changed.setdefault(each.condition, []).append(each)
    return render(
        "differences.html",
        conditions=[*_conditions(manifest)],
        agents=agents,
        changed=changed,
        words=change_words,
        pieces=word_diff,
    )


def arm_differences(found: ArmComparison) -> Markup:
    """Render what two arms differ in: agent, model, prompt, contexts, tools and their words; and what their runs do.

    Raises RunError.
    """
    arm, against = found.arm, found.against
    here, there = arm.run.manifest, against.run.manifest
    before, after = _prompt(there, against.condition), _prompt(here, arm.condition)
    return render(
        "arm_differences.html",
        agents=[(each, each.run.manifest.agents[each.agent]) for each in (against, arm)],
        same_agent=_agent(here, arm.agent) == _agent(there, against.agent),
        prompt=[*_lines(before, after)],
        same_prompt=before == after,
        servers=servers_between(arm.run, arm.condition, against.run, against.condition),
        contexts=[(each, each.run.manifest.conditions[each.condition]) for each in (against, arm)],
        differences=found.differences,
        words=change_words,
        pieces=word_diff,
    )


def _agent(manifest: Manifest, label: str) -> tuple[str, str | None, dict[str, Any]]:
    entry = manifest.agents[label]
    return entry.type, entry.model, _options(manifest, "agents", label)


def making(report: Report) -> Markup:
    """Render how the run was made: dataset, judges, rubrics, scorers, versions and the configuration."""
    return render("making.html", manifest=report.run.manifest, path=report.run.path.name, names=report.names)


def _conditions(manifest: Manifest) -> Iterator[_Condition]:
    base = _prompt(manifest, manifest.baseline)
    for label, entry in manifest.conditions.items():
        prompt = _prompt(manifest, label)
        options = _options(manifest, "conditions", label)
        yield _Condition(
            label=label,
            baseline=label == manifest.baseline,
            same_prompt=prompt == base,
            prompt=[*_lines(prompt if label == manifest.baseline else base, prompt)],
            contexts={name: _options(manifest, "contexts", name) for name in entry.contexts},
            tools={name: server.tools for name, server in entry.servers.items()},
            sharing={name: entry_text(server) for name, server in entry.servers.items()},
            options={key: value for key, value in options.items() if key not in ("system_prompt", "contexts")},
        )


def _options(manifest: Manifest, section: str, label: str) -> dict[str, Any]:
    """Return what the configuration says of an agent, condition or context."""
    named = manifest.config.get(section)
    found = named.get(label) if isinstance(named, Mapping) else None
    return dict(found) if isinstance(found, Mapping) else {}


def _prompt(manifest: Manifest, label: str) -> str:
    return str(_options(manifest, "conditions", label).get("system_prompt") or "")


def _lines(before: str, after: str) -> Iterator[tuple[str, str]]:
    """Yield the lines of a prompt with what happened to each: ` ` stayed, `+` added, `-` left out."""
    for line in difflib.ndiff(before.splitlines(), after.splitlines()):
        if line[0] != "?":
            yield line[0], line[2:]
