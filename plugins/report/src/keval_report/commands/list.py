"""`keval list`: the runs there are, one line each: state, size and the effect that stands out."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias

import attrs
import click
from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from keval.cli.console import print_json, safe
from keval.cli.messages import tell
from keval.cli.options import json_option, results_option
from keval.errors import RunError
from keval.records.formats import signed
from keval.records.manifest import Manifest
from keval.store.run import list_runs
from keval.store.serialization import to_plain
from keval_analysis.findings.effects import Effect, Verdict, better_share
from keval_analysis.findings.formats import interval_of
from keval_analysis.findings.summary import Summary
from keval_report.terminal.console import data_console
from keval_report.words import display_names, one_line, padded, picked, run_place


def _readable(root: Path) -> Iterator[ListedRun]:
    for run in list_runs(root):
        try:
            yield ListedRun(run_place(run.path), run.manifest, run.written_summary(), run.is_locked)
        except RunError as error:
            # One damaged run must not hide the others.
            tell(f"skipped: {error}")


@click.command("list")
@results_option
@json_option
def command(output_dir: Path, as_json: bool) -> None:
    """List the runs in the results directory, one a line, oldest first."""
    runs = list(_readable(output_dir))
    if as_json:
        print_json(describe_runs(runs))
    elif not runs:
        tell(f"no runs under {output_dir}; `keval run CONFIG` makes one")
    else:
        print_runs(runs, data_console())


RunState: TypeAlias = Literal["done", "unfinished", "running"]

_STYLES = {"done": "", "unfinished": "yellow", "running": "cyan"}
_VERDICT_STYLES = {"better": "green", "worse": "red"}
_VERDICTS: Mapping[str, str] = {"same": "equivalent", "unclear": "cannot tell", "unknown": "no interval"}
"""Verdicts that are told in other words than their own."""


@attrs.frozen
class Headline:
    """The effect that stands out, in words: which metric, of whom and against what, by how much, and the verdict."""

    metric: str
    whose: str
    difference: str
    interval: str
    verdict: Verdict
    told: str


@attrs.frozen
class ListedRun:
    """A run as it is listed. `summary` is `None` until it was finished once; `running` says that it is written to."""

    path: str
    manifest: Manifest
    summary: Summary | None
    running: bool = False

    @property
    def state(self) -> RunState:
        """Whether a process works on the run, and else whether all trials were run and all scores made."""
        if self.running:
            return "running"
        summary = self.summary
        whole = summary is not None and not any(arm.missing for arm in summary.arms)
        return "done" if whole and self.trials == self.manifest.trials else "unfinished"

    @property
    def trials(self) -> int | None:
        """How many trials were run; `None` if that was not written down."""
        return sum(arm.trials for arm in self.summary.trials) if self.summary else None

    @property
    def failed(self) -> int | None:
        """How many trials failed; `None` if that was not written down."""
        return sum(arm.failed for arm in self.summary.trials) if self.summary else None

    @property
    def effect(self) -> Effect | None:
        """The effect that stands out: a sure one before others, then the largest for its scale.

        Effects of conditions go before those of agents, and primary metrics before others. Scales without an end cannot
        be compared with others.
        """
        if self.summary is None:
            return None
        scales = {entry.scorer: entry.scale for entry in self.summary.scorers}
        known = [e for e in self.summary.effects if e.difference is not None and not math.isinf(scales[e.scorer].high)]

        primary = self.summary.primary

        def order(effect: Effect) -> tuple[bool, bool, bool, float]:
            size = abs(better_share(effect.difference or 0.0, scales[effect.scorer]) or 0.0)
            sure = effect.verdict in ("better", "worse")
            return effect.kind == "condition", effect.metric in primary, sure, size

        return max(known, key=order, default=None)

    @property
    def headline(self) -> Headline | None:
        """The effect that stands out, in words."""
        effect = self.effect
        if effect is None or self.summary is None:
            return None
        whose = f"against {effect.against.agent}" if effect.kind == "agent" else effect.condition
        metric = display_names(entry.scorer for entry in self.summary.scorers)[effect.scorer]
        figures = signed(effect.difference or 0.0), interval_of(effect)
        told = _VERDICTS.get(effect.verdict, effect.verdict)
        return Headline(metric, one_line(f"{effect.agent} {whose}"), *figures, effect.verdict, told)


def describe_runs(runs: Iterable[ListedRun]) -> list[dict[str, Any]]:
    """Describe runs as plain data. An unfinished run may have no figures."""
    return [
        {
            **picked(run.manifest, "run", "evaluation"),
            "state": run.state,
            "started": run.manifest.started,
            "path": run.path,
            "note": run.manifest.note,
            "simulated": list(run.manifest.simulated),
            "replay": to_plain(run.manifest.replay) if run.manifest.replay else None,
            "agents": list(run.manifest.agents),
            "conditions": list(run.manifest.conditions),
            "planned": run.manifest.trials,
            **picked(run, "trials", "failed"),
            "largest_effect": to_plain(run.effect),
        }
        for run in runs
    ]


def print_runs(runs: Sequence[ListedRun], console: Console) -> None:
    """Print runs for people, one line each and one for a note, cut at the console's width."""
    columns = [_told(run) for run in runs]
    widths = [max(cell_len(row[position]) for row in columns) for position in range(4)]
    for run, told in zip(runs, columns, strict=True):
        line = Text()
        styles = ("bold", _STYLES[run.state], "", "dim")
        for text, width, style in zip(told, widths, styles, strict=True):
            line.append(padded(text, width), style).append("  ")
        if headline := run.headline:
            # What decides stands first, as the line may be cut.
            line.append(f"{headline.difference} ")
            line.append(headline.told, _VERDICT_STYLES.get(headline.verdict, "dim"))
            line.append(f"  {headline.metric}, {headline.whose} {headline.interval}")
        line.rstrip()
        line.truncate(console.width, overflow="ellipsis")
        console.print(line, soft_wrap=True)
        if note := run.manifest.note:
            below = safe(f"    {one_line(note)}", "dim")
            below.truncate(console.width, overflow="ellipsis")
            console.print(below, soft_wrap=True)


def _told(run: ListedRun) -> tuple[str, str, str, str]:
    """Return id, state, evaluation and size of a run as texts."""
    manifest = run.manifest
    kinds = {"simulated": manifest.simulated, "replayed": manifest.replay, "played": manifest.play}
    state = ", ".join([run.state, *(kind for kind, applies in kinds.items() if applies)])
    of = "" if run.state == "done" else f"{run.trials or 0:,} of "
    size = f"{of}{manifest.trials:,} trials{f', {run.failed:,} failed' if run.failed else ''}"
    return one_line(manifest.run), state, one_line(manifest.evaluation), size
