"""The keys of a config that say what the results are to show, and when a run may end early."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from keval.config.evaluation import Evaluation
from keval.errors import Problem, suggestion
from keval.records.manifest import Manifest
from keval.records.scores import Scale, Scorer
from keval.records.trial import Trial
from keval.seams import registry
from keval.seams.hooks import hookimpl
from keval.seams.remedies import remedy
from keval_analysis.until import Until

if TYPE_CHECKING:
    from keval.plan.check import PlanCheck
    from keval.plan.plan import Scorers
    from keval.run.active_run import ActiveRun

_SHARE = re.compile(r"(\d+(?:\.\d+)?)\s*(%?)")


@attrs.frozen
class Wanted:
    """What the results are to decide.

    `primary` names the metrics and rubrics that the run is to decide; the others are explored.
    `thresholds` maps a metric or rubric to the value from which a score passes, where repetitions are counted.
    `margin` maps one to the smallest difference that matters, in points of the scale, or as a share of it such as 5%.
    """

    primary: tuple[str, ...] = ()
    thresholds: Mapping[str, float] = attrs.field(factory=dict)
    margin: Mapping[str, float | str] = attrs.field(factory=dict)

    @hookimpl
    def keval_check_plan(self, check: PlanCheck) -> None:
        scales = {metric: scale for (metric, _), scale in check.scorers.scales().items()}
        # A run that is scored again has thresholds and margins that were checked when it began.
        is_new = check.manifest is None
        for name, value in self.thresholds.items() if is_new else ():
            if _is_scorer(check, "thresholds", name, scales) and name in scales:
                scale = scales[name]
                if not scale.low <= value <= scale.high:
                    told = f"the scale of {name!r} is from {scale.low:g} to {scale.high:g}, got {value:g}"
                    check.problem(("thresholds", name), told)
        for name, written in self.margin.items() if is_new else ():
            if _is_scorer(check, "margin", name, scales) and name in scales:
                try:
                    _margin(written, scales[name])
                except ValueError as error:
                    check.problem(("margin", name), str(error))
        if self.primary and is_new:
            from keval_analysis.gate_language import check_primary

            check_primary(check, self.primary)

    @hookimpl
    def keval_run_described(self, run: ActiveRun) -> None:
        run.manifest = self.described(run.manifest)

    def described(self, manifest: Manifest) -> Manifest:
        """Return a manifest with what is wanted of the scorers that it has; a flag may have left some out."""
        entries = tuple(
            attrs.evolve(
                entry, scale=self.with_margin(entry.metric, entry.scale), threshold=self.thresholds.get(entry.metric)
            )
            for entry in manifest.scorers
        )
        scored = {entry.metric for entry in entries}
        return attrs.evolve(manifest, scorers=entries, primary=tuple(name for name in self.primary if name in scored))

    def with_margin(self, metric: str, scale: Scale) -> Scale:
        """Return a scale with the margin of the config, in its units."""
        written = self.margin.get(metric)
        return scale if written is None else attrs.evolve(scale, margin=_margin(written, scale))


def scales_of(evaluation: Evaluation, scorers: Scorers) -> dict[Scorer, Scale]:
    """Return the scale of every scorer, with the margins of the config."""
    wanted = evaluation.section(Wanted)
    return {scorer: wanted.with_margin(scorer[0], scale) for scorer, scale in scorers.scales().items()}


def _margin(written: float | str, scale: Scale) -> float:
    """Return a margin in the units of a scale. Raises ValueError: it is no number or share, or not on the scale."""
    found = _SHARE.fullmatch(str(written).strip())
    if found is None:
        raise ValueError(f"a margin is a number, or a share of the scale such as 5%: {written!r}")
    if found[2] and math.isinf(scale.high):
        raise ValueError(f"the scale has no end that {written!r} could be a share of; write a number")
    value = float(found[1]) / 100 * (scale.high - scale.low) if found[2] else float(found[1])
    return attrs.evolve(scale, margin=value).least


def _is_scorer(check: PlanCheck, key: str, name: str, scales: Mapping[str, Scale]) -> bool:
    """Return whether a metric or rubric exists that an entry of a key is for; if none does, that is a problem."""
    # A flag may have narrowed what scores.
    installed = [item.name for group in ("keval.metrics", "keval.rubrics") for item in registry.components(group)]
    known = {*scales, *installed, *(spec.label for spec in check.evaluation.rubrics)}
    if name not in known:
        hint = suggestion(name, known) or f"; the evaluation has {', '.join(scales) or 'none'}"
        check.problem((key, name), f"no metric or rubric named {name!r}{hint}", at_key=True)
    return name in known


_SCHEMA = {
    "type": "array",
    "items": {"type": "string"},
    "description": "what the results must show, such as basic/contains >= 0.8",
}


@attrs.frozen
class Gates:
    """`gates` are what the results must show, such as `basic/contains >= 0.8`."""

    gates: Any = attrs.field(default=(), metadata={"schema": _SCHEMA})
    _flags: tuple[str, ...] = attrs.field(default=(), init=False)

    def with_gates(self, flags: Sequence[str]) -> Gates:
        """Return the gates with those of flags, too."""
        found = attrs.evolve(self)
        # `evolve` takes no field that is not an option, and flags are none.
        object.__setattr__(found, "_flags", (*dict.fromkeys(flags),))
        return found

    @property
    def written(self) -> Mapping[str, Any]:
        """The gates, with their variables filled in, and those of flags."""
        return {"gates": [*self.all_gates]} if self.all_gates else {}

    @property
    def all_gates(self) -> tuple[str, ...]:
        """The gates of the config and of flags, each once."""
        return (*(gate for _, gate in self._own if gate not in self._flags), *self._flags)

    @property
    def _own(self) -> list[tuple[int, str]]:
        """The gates of the config, each with its position."""
        listed = self.gates if isinstance(self.gates, list | tuple) else ()
        return [(at, gate) for at, gate in enumerate(listed) if isinstance(gate, str)]

    def check_config(self, evaluation: Evaluation) -> Iterator[Problem]:
        """Yield what is no gate. What gates say is checked with the plan."""
        example = "such as `basic/contains >= 0.8`"
        if not isinstance(self.gates, list | tuple):
            told = remedy("value", tuple[str, ...], self.gates)
            yield evaluation.source.problem(("gates",), f"expected a list of gates, {example}{told}")
            return
        for at, gate in enumerate(self.gates):
            if not isinstance(gate, str):
                yield evaluation.source.problem(("gates", at), f"expected a gate, {example}, got {gate!r}")

    def unchecked(self, evaluation: Evaluation) -> list[tuple[str, str]]:
        """Return the gates whose names were not checked when the run began, each with its place."""
        own = [] if evaluation.is_reread else self._own
        places = [(gate, evaluation.source.place(("gates", at))) for at, gate in own if gate not in self._flags]
        return places + [(gate, f"--fail-under {gate}") for gate in self._flags]

    @hookimpl
    def keval_check_plan(self, check: PlanCheck) -> None:
        if unchecked := self.unchecked(check.evaluation):
            from keval_analysis.gate_language import check_gates

            check_gates(check, unchecked, scales_of(check.evaluation, check.scorers))


@attrs.define(eq=False)
class EarlyEnd:
    """When a run may end early. All arms and repetitions of a question are then asked before the next one."""

    until: Until | None = None
    _monitor: Any = attrs.field(default=None, init=False)

    @property
    def question_by_question(self) -> bool:
        """Whether questions are asked one by one."""
        return self.until is not None

    @hookimpl
    def keval_check_plan(self, check: PlanCheck) -> None:
        if self.until is not None and check.samples is not None:
            from keval_analysis.monitor import check_until  # NumPy takes a tenth of a second to import

            check_until(self.until, check)

    @hookimpl
    def keval_run_begins(self, run: ActiveRun) -> None:
        if self.until is not None:
            from keval.plan.plan import Plan
            from keval_analysis.monitor import Monitor

            assert isinstance(run.plan, Plan)  # noqa: S101 - for mypy: it has trials
            self._monitor = Monitor.of(self.until, run.plan, run.manifest)
            run.amend(looking=self._monitor.entry)
            run.has_ended = self._monitor.has_ended

    @hookimpl
    def keval_scoring_began(self, run: ActiveRun, late: Sequence[str]) -> None:
        if self._monitor is not None:
            self._monitor.begin(run.run, late)

    @hookimpl
    def keval_trial_scored(self, trial: Trial, scores: Sequence[Any]) -> None:
        if self._monitor is not None:
            self._monitor.add(trial, scores)

    @hookimpl
    def keval_run_ending(self, run: ActiveRun) -> str | None:
        if self._monitor is not None:
            run.manifest = self._monitor.conclude(run.manifest, run.run.count_trials())
        return run.manifest.looking.ended if run.manifest.looking is not None else None


@attrs.frozen
class Anchors:
    """`anchors` is a file of answers that people have labelled, which judges grade again in every run."""

    anchors: Path | None = None

    @hookimpl
    def keval_check_plan(self, check: PlanCheck) -> None:
        if self.anchors is not None and check.scorers.judges and check.samples is not None and not check.played:
            from keval_analysis.labels.anchors import read_anchors

            check.problems.extend(read_anchors(self.anchors, check.evaluation, check.scorers)[1])
        if self.anchors is not None and check.manifest is None and not check.evaluation.judges:
            check.notice(("anchors",), "no judge grades anchors; add `judges:`", at_key=True)

    @hookimpl
    async def keval_trials_done(self, run: ActiveRun, missing: bool) -> None:
        if self.anchors is not None:
            from keval_analysis.labels.grading import grade_anchors

            await grade_anchors(run, self.anchors, missing=missing)
