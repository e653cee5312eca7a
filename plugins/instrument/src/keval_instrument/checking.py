"""Checking an evaluation: its runs are made, within one budget, or found, examined, and held against its bounds.

Bounds of a config say what figures of examinations must be.
"""

from __future__ import annotations

import operator
import random
import re
import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from keval import Run, RunError
from keval.cli.console import message_console
from keval.cli.messages import redactor
from keval.cli.session import carry_out, run_to_end
from keval.config.evaluation import Budget
from keval.config.load import effective, with_data
from keval.config.source import Source
from keval.errors import ConfigError, suggestion
from keval.plan.build import make_plan
from keval.plugin import ComparingJudge, Evaluation, Plan
from keval.run.active_run import RunOptions
from keval.run.flow import run_plan
from keval.store.run import find_run
from keval_instrument import verify
from keval_instrument.check_folder import RUNS, CheckFolder, Material, RunName, WrittenAnswer
from keval_instrument.examinations import EXAMINATIONS, VERIFY, examine, figures_of
from keval_instrument.findings import BoundResult, Checked, Examined, Figure
from keval_instrument.settings import settings_of
from keval_report.terminal.progress import Progress
from keval_report.totals import total_cost
from keval_report.words import one_line


def check_config(evaluation: Evaluation, names: Sequence[str], results: Path) -> tuple[Checked, Material]:
    """Make the runs that examinations need, and do these; returns what was found, in which runs.

    Raises KevalError.
    """
    bounds = _bounds(evaluation.source, settings_of(evaluation).bounds, names)
    found: list[Examined] = []
    plan = make_plan(evaluation) if [*names] != [VERIFY] else None
    if VERIFY in names:
        if plan is None or any(sample.solution is not None for sample in plan.samples):
            found.append(run_to_end(verify.examine(evaluation, RunOptions(redactor=redactor()))))
        else:
            found.append(Examined(VERIFY, reason="no sample has a `solution:`"))
    material = Material(plan=plan)
    if plan is not None:
        folder = CheckFolder.create(results / checked_folder(evaluation))
        wanted = {run for name in names for run in EXAMINATIONS[name]}
        material = RunMaker(plan, folder, results).make(wanted)
    found += [examine(name, material) for name in names if name != VERIFY]
    return _checked(evaluation.name, material, found, bounds, complete=True), material


def check_run(target: str, names: Sequence[str], results: Path) -> tuple[Checked, Material]:
    """Examine a run, with the other runs of its check if it was made for one; or the runs of a check by its folder.

    Raises KevalError.
    """
    material = _found(target, results)
    run = next((run for name in RUNS if (run := material.run(name))), None)
    if run is None:
        raise RunError(f"the check in {target} has made no run; check its config again")
    found = [examine(name, material) for name in names if name != VERIFY]
    if VERIFY in names:
        found.insert(0, Examined(VERIFY, reason="only `keval check CONFIG` does solutions"))
    manifest = run.manifest
    source = Source(str(run.path / "manifest.json"), Path(manifest.config_folder), dict(manifest.config))
    bounds = _bounds(source, (manifest.config.get("check") or {}).get("bounds") or (), names)
    return _checked(manifest.evaluation, material, found, bounds, complete=False), material


def _found(target: str, results: Path) -> Material:
    """Return the run that is meant, with the others of its check; or those of the latest check in a folder."""
    if folder := CheckFolder.find(Path(target)):
        return folder.material()
    run = find_run(target, results)
    if folder := CheckFolder.of(run):
        return folder.material()
    written = "only `keval check CONFIG` has answers written"
    return Material(asked=run, reasons={"damaged": written, "restyled": written})


def _bounds(source: Source, texts: Sequence[str], names: Sequence[str]) -> list[Bound]:
    """Return the bounds of figures that the examinations named have. Raises ConfigError."""
    # A bound may be of an examination that is not asked for now, and its name takes importing all of them.
    found = read_bounds(source, texts, figures_of()) if texts else []
    return [bound for bound in found if bound.figure in figures_of(names)]


def _checked(
    evaluation: str, material: Material, found: Sequence[Examined], bounds: Sequence[Bound], *, complete: bool
) -> Checked:
    runs: dict[str, str] = {name: str(run.path) for name in RUNS if (run := material.run(name))}
    results = tuple(bound.decide(found, complete=complete) for bound in bounds)
    return Checked(evaluation, runs, tuple(found), results)


@attrs.define
class RunMaker:
    """Makes the runs of a check of the evaluation that `plan` is of, and notes each in the folder of the check.

    Ctrl-C leaves a run that can be resumed.
    """

    plan: Plan
    folder: CheckFolder
    results: Path
    material: Material = attrs.field(init=False)
    budget: Budget = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.material = Material(plan=self.plan)
        own = settings_of(self.plan.evaluation).budget
        self.budget = own if own != Budget() else self.plan.evaluation.budget

    def make(self, wanted: Collection[RunName]) -> Material:
        """Make the runs that are wanted; `restyled` needs `asked`. Raises KevalError."""
        ids, evaluation = self.plan.samples.ids, self.plan.evaluation
        number = min(settings_of(evaluation).samples, len(ids))
        # By position, so that the samples stay in the order of the dataset.
        drawn = random.Random(evaluation.execution.seed).sample(range(len(ids)), number)
        samples = tuple(ids[position] for position in sorted(drawn))
        if "damaged" in wanted:
            self._make("damaged", lambda: self._damaged(samples))
        if {"asked", "restyled"} & {*wanted}:
            self._make("asked", lambda: asked_plan(self.plan, samples, self.budget))
        if "restyled" in wanted:
            self._make("restyled", self._restyled)
        return self.material

    def _make(self, name: RunName, planned: Callable[[], Plan | str]) -> None:
        """Make a run, or note why it is not made."""
        used = [what for what, most in attrs.asdict(self.budget).items() if most == 0]
        found = f"the budget of the check has no {used[0]} left; see `check.budget`" if used else planned()
        if isinstance(found, str):
            self.material = attrs.evolve(self.material, reasons={**self.material.reasons, name: found})
            self.folder.keep(self.material)
            return
        progress = Progress(message_console(), found.trial_count)
        # Examinations of the run that is asked read its requests; others are only scored.
        options = RunOptions([("keval/progress", progress)], redactor(), record=name == "asked")

        def last_words() -> str:
            again = f"`{shlex.join(['keval', 'check', str(self.folder.path)])}` examines what there is"
            if progress.directory is None:
                return f"interrupted; {again}"
            self._note(name, Run(progress.directory))
            resume = shlex.join(["keval", "resume", str(progress.directory)])
            return f"interrupted; `{resume}` finishes the run, and {again}"

        running, grace = run_plan(found, self.results, options), found.evaluation.execution.grace_seconds
        run, _ = carry_out(running, progress, last_words, stop=options.stop, grace=grace)
        self._note(name, run)
        self.budget = budget_left(self.budget, run)

    def _note(self, name: RunName, run: Run) -> None:
        # At once, so that a check which is interrupted later knows its runs.
        noted: dict[str, Any] = {name: run}
        self.material = attrs.evolve(self.material, **noted)
        self.folder.keep(self.material)

    def _damaged(self, samples: Sequence[str]) -> Plan | str:
        from keval_instrument.damages import written_answers  # as all that only some checks need

        found = [self.plan.samples.named(name) for name in samples]
        if all(sample.answer is None for sample in found):
            return "no sample has a golden answer; `dataset.answer_key` names its key"
        return self._written("damaged", "golden", [*written_answers(found, seed=self.plan.evaluation.execution.seed)])

    def _restyled(self) -> Plan | str:
        from keval_instrument.restyling import restyled_answers

        asked = self.material.asked
        if asked is None:
            return self.material.reasons["asked"]
        return self._written("restyled", "plain", [*restyled_answers(asked, seed=self.plan.evaluation.execution.seed)])

    @property
    def _lacks_scorers(self) -> bool:
        """Whether nothing scores an answer by what it says."""
        return not self.plan.evaluation.metrics and not self.plan.evaluation.judges

    def _written(self, name: RunName, baseline: str, answers: Sequence[WrittenAnswer]) -> Plan | str:
        """Write answers, and return the plan to score them, or why there is nothing to score."""
        if self._lacks_scorers:
            return "only checks of what trials leave score the answers; `verify` examines these"
        conditions = dict.fromkeys([baseline, *(answer.condition for answer in answers)])
        answered = tuple(dict.fromkeys(answer.sample for answer in answers))
        if len(conditions) < 2:
            return "no answer can be changed in any way"
        evaluation = self.plan.evaluation
        data = _without(effective(evaluation), *_TASKS, *_OF_ARMS)
        for judge in self.plan.scorers.judges:
            if isinstance(judge.plugin, ComparingJudge):
                # The conditions are other ones here, and the config's is none of them.
                data["judges"][judge.label]["against"] = baseline
        data["execution"] |= {"num_repetitions": 1, "judge_repetitions": 1, "until": None, "executor": "local"}
        path = self.folder.write_samples(name, map(self.plan.samples.named, answered))
        written = self.folder.write_answers(name, answers, self.material.asked)
        data |= {
            "name": _checked_name(evaluation),
            "dataset": {"path": str(path), **_cluster_key(self.plan, answered)},
            "agents": {_WRITER: {"type": "recorded", "path": str(written), "partial": True}},
            "conditions": conditions,
            "budget": attrs.asdict(self.budget),
        }
        return make_plan(attrs.evolve(with_data(evaluation, data), sample_ids=(), limit=None))


_WRITER = "written"
"""The agent whose answers were written."""
_TASKS = ("ablate", "anchors", "gates", "sandbox", "verify", "workspace")
_OF_ARMS = ("baseline", "contexts", "primary", "thresholds")


def checked_folder(evaluation: Evaluation) -> str:
    """Return the name of the folder in which the runs of checks are."""
    header = attrs.evolve(evaluation.header, name=_checked_name(evaluation))
    return attrs.evolve(evaluation, header=header).folder


def asked_plan(plan: Plan, samples: tuple[str, ...], budget: Budget) -> Plan:
    """Return the plan to ask samples as often as the config says for checks, with no gate. Raises ConfigError."""
    evaluation, settings = plan.evaluation, settings_of(plan.evaluation)
    data = _without(effective(evaluation), "ablate", "anchors", "gates")
    data["execution"] |= {
        "num_repetitions": settings.repetitions,
        "judge_repetitions": settings.judge_repetitions,
        "keep_requests": True,
        "until": None,
    }
    # A key that none of the drawn samples has would be refused.
    if not _cluster_key(plan, samples):
        data["dataset"] = _without(data["dataset"], "cluster_key")
    found = with_data(evaluation, {**data, "name": _checked_name(evaluation), "budget": attrs.asdict(budget)})
    return make_plan(attrs.evolve(found, sample_ids=samples, limit=None))


def budget_left(budget: Budget, run: Run) -> Budget:
    """Return what a run has left of a budget. Raises RunError."""
    summary = run.written_summary() or run.summary()
    recorded = {label for label, agent in run.manifest.agents.items() if agent.recording}
    asked = [arm for arm in summary.trials if arm.agent not in recorded]
    usages = [usage for arm in asked for usage in (arm.usage, arm.given_up.usage)]
    usages += [each.usage for each in summary.judging]
    used = {
        "tokens": sum((usage.input_tokens or 0) + (usage.output_tokens or 0) + usage.estimated for usage in usages),
        "trials": sum(arm.trials for arm in summary.trials),
        "usd": total_cost(summary).usd or 0.0,
    }
    left = {name: max(0, most - used[name]) for name, most in attrs.asdict(budget).items() if most is not None}
    return attrs.evolve(budget, **left)


def _checked_name(evaluation: Evaluation) -> str:
    return f"{evaluation.name}-check"


def _cluster_key(plan: Plan, samples: tuple[str, ...]) -> dict[str, str]:
    """Return the key under which samples have their sources, as a config writes it; nothing if none of them has one."""
    key = plan.evaluation.dataset.cluster_key if plan.evaluation.dataset else None
    has = any(key in plan.samples.named(sample).metadata for sample in samples)
    return {"cluster_key": key} if key is not None and has else {}


def _without(data: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in data.items() if key not in keys}


_FORM = re.compile(r"\s*(?P<figure>\w+)(?:\s+of\s+(?P<labels>.+?))?\s*(?P<op>>=|<=)\s*(?P<limit>-?\d+(?:\.\d+)?)\s*")
_OPERATORS: Mapping[str, Callable[[float, float], bool]] = {">=": operator.ge, "<=": operator.le}


@attrs.frozen
class Bound:
    """One bound. It is about the most general figures of its name, or about those of all of its `labels`."""

    text: str
    figure: str
    op: str
    limit: float
    labels: tuple[str, ...] = ()

    def decide(self, examined: Sequence[Examined], *, complete: bool) -> BoundResult:
        """Return whether every figure that the bound is about meets it.

        A figure without a value does not, unless the check is not `complete`, as it is of a run alone.
        """
        lacking = False if complete else None
        named = [figure for each in examined for figure in each.figures if figure.name == self.figure]
        about = [figure for figure in named if self._is_about(figure)]
        # Of figures of one name, those of a whole come before those of its parts.
        about = [figure for figure in about if len(figure.of) == min(len(each.of) for each in about)]
        if not about:
            known = dict.fromkeys(label for figure in named for label in figure.of.values())
            hint = next(filter(None, (suggestion(label, known) for label in self.labels if label not in known)), "")
            undone = (each.reason for each in examined if self.figure in figures_of([each.examination]))
            return BoundResult(self.text, lacking, next(filter(None, undone), f"no such figure was found{hint}"))
        if unknown := [figure for figure in about if figure.value is None]:
            return BoundResult(self.text, lacking, "; ".join(map(_told, unknown)))
        holds = _OPERATORS[self.op]
        failing = [figure for figure in about if not holds(figure.value or 0.0, self.limit)]
        shown = failing or [min(about, key=lambda figure: abs((figure.value or 0.0) - self.limit))]
        return BoundResult(self.text, not failing, "; ".join(map(_told, shown)))

    def _is_about(self, figure: Figure) -> bool:
        values = figure.of.values()
        return all(any(value == label or value.startswith(f"{label}-") for value in values) for label in self.labels)


def read_bounds(source: Source, texts: Sequence[str], figures: Mapping[str, str]) -> list[Bound]:
    """Read the bounds of a config. Raises ConfigError: one is no bound, or of no known figure."""
    found = [_read(text, figures) for text in texts]
    places = (("check", "bounds", place) for place in range(len(found)))
    problems = [source.problem(at, each) for at, each in zip(places, found, strict=True) if isinstance(each, str)]
    if problems:
        raise ConfigError(problems)
    return [each for each in found if isinstance(each, Bound)]


def _read(text: str, figures: Mapping[str, str]) -> Bound | str:
    """Return a bound, or what is wrong with it."""
    match = _FORM.fullmatch(text)
    if match is None:
        return f"expected a bound such as 'detection >= 0.8' or 'detection of number <= 0.1', got {text!r}"
    figure = match["figure"]
    if figure not in figures:
        return f"no figure named {figure!r}{suggestion(figure, figures) or suggestion('', figures, 'figures')}"
    labels = tuple(label.strip() for label in (match["labels"] or "").split(",") if label.strip())
    return Bound(text.strip(), figure, match["op"], float(match["limit"]), labels)


def _told(figure: Figure) -> str:
    of = ", ".join(map(one_line, figure.of.values()))
    value = figure.told if figure.value is not None else f"no value: {figure.reason}"
    return f"{of} {value}" if of else value
