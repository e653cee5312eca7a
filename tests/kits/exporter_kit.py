"""The check of exporters."""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import attrs

from keval import Failure, Message, Run, RunError, Sample, Scale, Score, Transcript, Trial
from keval.config.load import read_evaluation
from keval.config.source import Source
from keval.dataset.read import Dataset
from keval.dataset.samples import Samples
from keval.plan.build import make_plan
from keval.plan.plan import ResolvedPlugin, Scorers
from keval.plugin import Context, TrialError, is_blank
from keval.records.trial import Attempt
from keval.run.flow import run_plan
from keval.seams.exporters import Exported
from keval.seams.registry import Component
from keval_testing.subject import Subject, excerpt, nothing_left_behind, rules_of
from keval_testing.unusual_trials import odd_trials

EXPORTER_RULES = rules_of("exporter", json.loads(Path(__file__).with_name("rules.json").read_text(encoding="utf-8")))
"""The rules of exporters, each with how to mend one that breaks it."""


def check_exporter(
    exporter: str | type | object, *, options: Mapping[str, Any] | None = None, run: Run | None = None
) -> None:
    """Check an exporter, given by its name, as a class or as an instance, with an odd run that is made for it.

    `options` are those of `keval export`, by the names of fields. One for runs of a kind is given such a `run`.

    Raises:
        BrokenRulesError: it breaks rules; the message names each one, what was seen, and how to mend it.
        PluginError: no such exporter is installed, or `options` do not construct it.
    """
    subject = Subject.of("keval.exporters", exporter, options, EXPORTER_RULES)
    if subject.check_options():
        with tempfile.TemporaryDirectory() as folder:
            exported = run or asyncio.run(make_odd_run(Path(folder, "results")))
            check = _Check(subject, exported, Path(folder))
            if check.exported("first use") is not None:
                with nothing_left_behind(subject):
                    check.run_all()
    subject.finish()


@attrs.frozen
class _Check:
    subject: Subject
    run: Run
    folder: Path

    def exported(self, name: str) -> Path | None:
        """Export the run to a new folder of this name, and return that; `None` if it failed."""
        to = self.folder / "exported" / name
        try:
            told = self.subject.new().export(self.run, to)
        except Exception as error:  # noqa: BLE001 - what a plugin raises is what is looked for
            self.subject.broken("any run", f"it raised {excerpt(error)}")
            return None
        return to if self._are_files_told(told, to) else None

    def run_all(self) -> None:
        before = _content(self.run.path)
        again = self.exported("again")
        if again is not None:
            if _content(again) != _content(self.folder / "exported" / "first use"):
                self.subject.broken("determinism", "the same run was exported twice, with different bytes")
            else:
                self._export_in_place(again)
        if _content(self.run.path) != before:
            self.subject.broken("run unchanged", "the run's directory has other files than before")
        self._check_refusals()

    def _are_files_told(self, told: object, to: Path) -> bool:
        if not isinstance(told, Exported):
            self.subject.broken("files", f"it returned {excerpt(told)}")
            return False
        outside = [path for path in told.files if not path.resolve().is_relative_to(to.resolve())]
        missing = [path for path in told.files if not path.is_file()]
        written = {path.resolve() for path in to.rglob("*") if path.is_file()}
        untold = sorted(written - {path.resolve() for path in told.files})
        for what, paths in (("is not in the folder", outside), ("was not written", missing), ("is not told", untold)):
            for path in paths:
                self.subject.broken("files", f"{path.name} {what}")
        if not told.files and not told.sent:
            self.subject.broken("files", "nothing was written, and nothing sent")
        for reason in told.left_out:
            if is_blank(reason) or "\n" in reason:
                self.subject.broken("left out", f"{excerpt(reason)} is no sentence")
        return not (outside or missing or untold)

    def _export_in_place(self, to: Path) -> None:
        """Export to a folder that has an earlier export, which was of another run, and a file of somebody else."""
        whole = _content(to)
        other = to / "notes of somebody else.txt"
        for path in whole:
            # Longer than the export, so that a file which is not cut before it is written keeps a rest.
            (to / path).write_bytes(b"an earlier export\n" * 10_000)
        other.write_text("keep me", encoding="utf-8")
        self.subject.new().export(self.run, to)
        if not other.exists():
            self.subject.broken("in place", "a file of somebody else is gone")
            return
        other.unlink()
        if _content(to) != whole:
            self.subject.broken("in place", "an earlier export was not replaced whole")

    def _check_refusals(self) -> None:
        for name in ("trials.jsonl", "scores.jsonl", "manifest.json"):
            damaged = self.folder / "damaged" / name / self.run.path.name
            shutil.copytree(self.run.path, damaged)
            # The first line is JSON, so that it is damaged only to whoever reads it as a record.
            (damaged / name).write_bytes(b'{"id": 1}\n' + (damaged / name).read_bytes()[40:])
            self._export_in_vain(Run(damaged), self.folder / "exported" / f"damaged {name}", f"a damaged {name}")
        file = self.folder / "a file"
        file.touch()
        self._export_in_vain(self.run, file / "deeper", "a folder that cannot be made")

    def _export_in_vain(self, run: Run, to: Path, what: str) -> None:
        try:
            self.subject.new().export(run, to)
        except RunError:
            return
        except Exception as error:  # noqa: BLE001 - what a plugin raises is what is looked for
            self.subject.broken("refusals", f"with {what} it raised {excerpt(error)}")


def _content(folder: Path) -> dict[str, str]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


_NAME = 'an odd, "quoted" & <marked> run'
_CONDITIONS = {"baseline": {}, "more + odd": {"system_prompt": "Answer\n{{ question }}\r\n\u2028=SUM(A1) <b>"}}


async def make_odd_run(root: Path) -> Run:
    """Make a run on disk with everything that an exporter may meet, and return it.

    Its agents and metrics are objects of this process.
    """
    data = {
        "name": _NAME,
        "dataset": {"path": "questions.jsonl"},
        "agents": {"agent": {"type": "testing/echo"}},
        "conditions": _CONDITIONS,
        "execution": {"retry": {"initial_backoff_seconds": 0}},
    }
    samples = tuple(trial.sample for trial in (*odd_trials(), *_failed_trials()))
    evaluation = read_evaluation(Source("the config", Path.cwd(), data))
    # Planned with an agent that a config can name; objects of this process then take its place.
    plan = make_plan(evaluation, Dataset(None, Samples.of(samples), ""), scored=False)
    metrics = {"odd": _OddMetric(), "seconds, =1": _Seconds()}
    scorers = Scorers(tuple(_resolved("keval.metrics", *each) for each in metrics.items()))
    agents = (_resolved("keval.agents", "agent", _OddAgent()),)
    run, _ = await run_plan(attrs.evolve(plan, agents=agents, scorers=scorers), root)
    return run


def _failed_trials() -> tuple[Trial, ...]:
    """Return trials that failed: one without anything, and one that was attempted twice and has half a transcript."""
    failure = Failure("agent", "http_500", "the model answered <b>500</b>\nin two lines", traceback="Traceback …")
    half = Transcript((Message("user", "Which?"), Message("assistant", "Let me look it up.")))
    first, second = (
        attrs.evolve(odd_trials()[0], sample=attrs.evolve(odd_trials()[0].sample, id=name), failure=failure)
        for name in ("a failed trial", "a trial that failed twice")
    )
    return (
        attrs.evolve(first, transcript=None),
        attrs.evolve(second, transcript=half, attempts=(Attempt(failure, half),)),
    )


def _resolved(group: str, label: str, plugin: Any) -> ResolvedPlugin:
    cls = type(plugin)
    return ResolvedPlugin(label, Component(group, label, f"{cls.__module__}:{cls.__name__}", "keval", ""), plugin)


@attrs.frozen
class _OddAgent:
    """Has the transcript of the odd trial that a sample is named after."""

    characteristics: ClassVar[Mapping[str, Any]] = {"files": 3}
    _trials: Mapping[str, Trial] = attrs.field(init=False)

    @_trials.default
    def _by_name(self) -> Mapping[str, Trial]:
        return {trial.sample.id: trial for trial in (*odd_trials(), *_failed_trials())}

    async def run(self, sample: Sample, context: Context) -> Transcript:
        trial = self._trials[sample.id]
        if trial.failure is not None:
            raise TrialError(trial.failure.message, kind=trial.failure.kind, retryable=bool(trial.attempts))
        # No server of a context has the tools of these trials.
        return attrs.evolve(trial.transcript or Transcript(), tools=None)


@attrs.frozen
class _OddMetric:
    """Gives values, neutral scores, none, and failures, with details of every kind."""

    scale: ClassVar[Scale] = Scale(0, 10, bands={"low": 0, "<high>": 5})

    def score(self, trial: Trial) -> Score:
        match trial.sample.id:
            case "no golden answer":
                return Score(None, "there is no answer\nto compare with, \x1b[31m=1+2")
            case "no facts":
                return Score(5.0, "nothing to judge", neutral=True)
            case "an answer with markup":
                raise ValueError("<b>cannot</b> be scored")
        marks = [{"start": 0, "end": 3, "label": "<i>", "kind": "good"}, {"start": 9**9, "end": -1}, "no mark"]
        details = {"marks": marks, "deep": {"list": [None, 1.5, "=1+2"]}, "": True}
        return Score(float(len(trial.output) % 11), "]]> 'quoted', \"twice\" \u202e", details=details)


@attrs.frozen
class _Seconds:
    scale: ClassVar[Scale] = Scale(0, math.inf, better="lower", unit="s")

    def score(self, trial: Trial) -> Score:
        duration = trial.transcript.duration if trial.transcript else None
        return Score(duration, "" if duration is not None else "the time is unknown")
