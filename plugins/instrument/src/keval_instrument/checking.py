"""Checking an evaluation: its runs are made or found, examined, and held against the bounds of the config."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from keval import RunError
from keval.cli.messages import redactor
from keval.cli.session import run_to_end
from keval.config.source import Source
from keval.plan.build import make_plan
from keval.plugin import Evaluation
from keval.run.active_run import RunOptions
from keval.store.run import find_run
from keval_instrument import verify
from keval_instrument.bounds import Bound, read_bounds
from keval_instrument.check_folder import CheckFolder
from keval_instrument.examinations import EXAMINATIONS, VERIFY, examine, figures_of
from keval_instrument.findings import Checked, Examined
from keval_instrument.making import RunMaker, checked_folder
from keval_instrument.material import RUNS, Material
from keval_instrument.settings import settings_of


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
    found = read_bounds(source, texts, figures_of()) if texts else []
    return [bound for bound in found if bound.figure in figures_of(names)]


def _checked(
    evaluation: str, material: Material, found: Sequence[Examined], bounds: Sequence[Bound], *, complete: bool
) -> Checked:
    runs: dict[str, str] = {name: str(run.path) for name in RUNS if (run := material.run(name))}
    results = tuple(bound.decide(found, complete=complete) for bound in bounds)
    return Checked(evaluation, runs, tuple(found), results)
