"""The check of exporters names the rule that an exporter breaks."""

from __future__ import annotations

import shutil
import threading
import uuid
from collections.abc import Mapping
from pathlib import Path

import attrs
import pytest

from keval import Run, RunError, ScoreLine
from keval.plugin import explained
from keval.seams.exporters import Exported
from keval_testing import BrokenRulesError
from tests.kits.exporter_kit import EXPORTER_RULES, check_exporter


@attrs.frozen
class Tally:
    """Writes a line for every trial and score."""

    prefix: str = "-"

    def text(self, run: Run) -> str:
        trials = [f"{self.prefix} {trial.id}: {trial.output!r}" for trial in run.trials()]
        return "\n".join([run.manifest.evaluation, *trials, *(f"{line.score!r}" for line in run.scores())])

    def export(self, run: Run, to: Path) -> Exported:
        path = to / "tally.txt"
        with explained(path):
            to.mkdir(parents=True, exist_ok=True)
            path.write_text(self.text(run), encoding="utf-8")
        return Exported((path,), ("tool calls are left out",))


@pytest.mark.slow
def test_an_exporter_that_keeps_the_rules_passes() -> None:
    check_exporter(Tally, options={"prefix": "*"})


class Given:
    def __init__(self, prefix: str) -> None:
        self.prefix = prefix


class Nothing:
    pass


class Valued(Tally):
    def text(self, run: Run) -> str:
        return "\n".join(f"{line.score.value:.2f}" for line in run.scores())


class OneFolder(Tally):
    def export(self, run: Run, to: Path) -> Exported:
        to.mkdir()
        return super().export(run, to)


class Untold(Tally):
    def export(self, run: Run, to: Path) -> Exported:
        super().export(run, to)
        return Exported(())


class Elsewhere(Tally):
    def export(self, run: Run, to: Path) -> Exported:
        return super().export(run, to.parent.parent / "elsewhere")


class Blank(Tally):
    def export(self, run: Run, to: Path) -> Exported:
        return attrs.evolve(super().export(run, to), left_out=("",))


class Stamped(Tally):
    def text(self, run: Run) -> str:
        return f"{uuid.uuid4()}\n{super().text(run)}"


class Appending(Tally):
    def export(self, run: Run, to: Path) -> Exported:
        earlier = (to / "tally.txt").read_text(encoding="utf-8") if (to / "tally.txt").exists() else ""
        told = super().export(run, to)
        told.files[0].write_text(earlier + self.text(run), encoding="utf-8")
        return told


class Clearing(Tally):
    def export(self, run: Run, to: Path) -> Exported:
        shutil.rmtree(to, ignore_errors=True)
        return super().export(run, to)


class Noting(Tally):
    def export(self, run: Run, to: Path) -> Exported:
        with (run.path / "exported").open("a", encoding="utf-8") as file:
            file.write("again\n")
        return super().export(run, to)


class Wrapping(Tally):
    def text(self, run: Run) -> str:
        try:
            return super().text(run)
        except RunError as error:
            raise ValueError("the run is damaged") from error


class Careless(Tally):
    def export(self, run: Run, to: Path) -> Exported:
        to.mkdir(parents=True, exist_ok=True)
        return super().export(run, to)


class Threaded(Tally):
    def text(self, run: Run) -> str:
        threading.Thread(target=threading.Event().wait, args=(5,), daemon=True).start()
        return super().text(run)


PLANTED: Mapping[str, list[type]] = {
    "options": [Given],
    "seam": [Nothing],
    "any run": [Valued, OneFolder],
    "files": [Untold, Elsewhere],
    "left out": [Blank],
    "determinism": [Stamped],
    "in place": [Appending, Clearing],
    "run unchanged": [Noting],
    "refusals": [Wrapping, Careless],
    "nothing left behind": [Threaded],
}


@pytest.mark.slow
@pytest.mark.parametrize(("rule", "exporter"), [(rule, each) for rule, planted in PLANTED.items() for each in planted])
def test_an_exporter_that_breaks_a_rule_is_told_which(rule: str, exporter: type) -> None:
    with pytest.raises(BrokenRulesError) as caught:
        check_exporter(exporter)

    assert (rule,) == caught.value.rules, str(caught.value)
    assert EXPORTER_RULES[rule] in str(caught.value)


def test_every_rule_is_planted_once() -> None:
    assert set(EXPORTER_RULES) == set(PLANTED)


@pytest.mark.slow
def test_the_odd_run_has_scores_and_trials_of_every_kind() -> None:
    class Looking(Tally):
        def text(self, run: Run) -> str:
            kinds.update(map(_kind, run.scores()))
            failed.update(trial.failure.kind for trial in run.trials() if trial.failure)
            return super().text(run)

    kinds: set[str] = set()
    failed: set[str] = set()

    check_exporter(Looking)

    assert {"value", "neutral", "unscored", "failed"} == kinds
    assert {"http_500"} == failed


def _kind(line: ScoreLine) -> str:
    if line.failure is not None:
        return "failed"
    return "unscored" if line.score.value is None else "neutral" if line.score.neutral else "value"
