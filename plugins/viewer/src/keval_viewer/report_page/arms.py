"""The arms of a run: their scores, trials and tools, what they differ in, and all else that the run was made of."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import attrs
from markupsafe import Markup

from keval import Manifest, Scale
from keval_analysis.comparison import ArmComparison
from keval_analysis.findings.summary import ArmScore
from keval_report.contexts import ServerDifference, change_words, entry_text, servers_between
from keval_report.report import Report
from keval_report.reviews import anchor_lines, judging_lines
from keval_viewer.report_page.rendering import Axis, Histogram, axis_of, histogram, render


@attrs.frozen
class _Metric:
    """How the scores of each arm are spread, and what is not among them.

    Without a histogram, no question has a score that counts.
    """

    name: str
    scale: Scale
    axis: Axis
    spreads: Sequence[tuple[ArmScore, Histogram | None]]


def distributions(report: Report) -> Markup:
    """Render for each metric the histogram of each arm, over questions."""
    metrics = [*_metrics(report)]
    drawn = [metric for metric in metrics if any(histogram for _, histogram in metric.spreads)]
    empty = [metric.name for metric in metrics if metric not in drawn]
    judging = [*judging_lines(report.summary), *anchor_lines(report.summary)]
    return render("distributions.html", report=report, metrics=drawn, empty=empty, judging=judging, infinite=math.isinf)


def _metrics(report: Report) -> Iterator[_Metric]:
    by_scorer: dict[tuple[str, str | None], list[ArmScore]] = {}
    for arm in report.summary.arms:
        by_scorer.setdefault(arm.scorer, []).append(arm)
    for scorer, arms in by_scorer.items():
        values: Mapping[tuple[str, str], Sequence[float]] = {
            key: [*by.get(scorer, {}).values()] for key, by in report.outline.values.items()
        }
        axis = axis_of(report.scales[scorer], (value for found in values.values() for value in found))
        spreads = []
        for arm in arms:
            found = values.get((arm.agent, arm.condition), ())
            spreads.append((arm, histogram(found, axis) if found else None))
        yield _Metric(report.names[scorer], report.scales[scorer], axis, spreads)


def differences(report: Report) -> Markup:
    """Render what the conditions differ in: prompt, contexts, tools and words; and the agents. Raises RunError."""
    manifest = report.run.manifest
    changed: dict[str, list[ServerDifference]] = {}
    for each in report.server_differences:
        changed.setdefault(each.condition, []).append(each)
    return render(
        "differences.html",
        manifest=manifest,
        options=partial(_options, manifest),
        prompt=partial(_prompt, manifest),
        lines=_lines,
        sharing=entry_text,
        changed=changed,
        words=change_words,
    )


_ABOVE = ("prompt of", "tools of", "instructions of", "description of", "definition of")
"""What two arms differ in of which the page tells before it tells what their runs do."""


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
        prompt=_lines(before, after),
        same_prompt=before == after,
        servers=servers_between(arm.run, arm.condition, against.run, against.condition),
        differences=[each for each in found.differences if not each.what.startswith(_ABOVE)],
        words=change_words,
    )


def _agent(manifest: Manifest, label: str) -> tuple[str, str | None, dict[str, Any]]:
    entry = manifest.agents[label]
    return entry.type, entry.model, _options(manifest, "agents", label)


def _options(manifest: Manifest, section: str, label: str) -> dict[str, Any]:
    """Return what the configuration says of an agent, condition or context."""
    named = manifest.config.get(section)
    found = named.get(label) if isinstance(named, Mapping) else None
    return dict(found) if isinstance(found, Mapping) else {}


def _prompt(manifest: Manifest, label: str) -> str:
    return str(_options(manifest, "conditions", label).get("system_prompt") or "")


def _lines(before: str, after: str) -> list[str]:
    """Return the lines of a prompt, each after what happened to it: ` ` stayed, `+` added, `-` left out."""
    compared = difflib.ndiff(before.splitlines(), after.splitlines())
    # `?` begins a line that shows where two lines differ.
    return [line[0] + line[2:] for line in compared if line[0] != "?"]


def word_diff(before: str | None, after: str | None) -> list[tuple[str, str]]:
    """Return the words of two texts with what happened to each piece: ` ` stayed, `+` added, `-` left out."""
    pieces = pieces_between((before or "").split(), (after or "").split())
    return [(mark, " ".join(words)) for mark, words in pieces]


def pieces_between(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[str, Sequence[str]]]:
    """Yield the words of two texts as `word_diff` does; white space around words makes them no others."""
    # In texts of 200 words and more, `autojunk` would not match the words that are frequent.
    compared = difflib.SequenceMatcher(None, [*map(str.strip, old)], [*map(str.strip, new)], autojunk=False)
    for kind, a, b, c, d in compared.get_opcodes():
        if kind == "equal":
            yield " ", new[c:d]
            continue
        if b > a:
            yield "-", old[a:b]
        if d > c:
            yield "+", new[c:d]
