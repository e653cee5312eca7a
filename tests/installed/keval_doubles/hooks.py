"""Hook plugins that add facts."""

import asyncio
import json
import logging
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs

from keval import Failure, Manifest, Sample, ScoreLine, Summary, Trial
from keval.plugin import LiveEvent, TrialInfo, hookimpl


@attrs.frozen
class Facts:
    """Adds `truth`, after waiting like one that asks a server."""

    truth: str = "sun"

    @hookimpl
    async def keval_sample_facts(self, sample: Sample) -> dict[str, Any]:
        return {"truth": self.truth}


class BrokenFacts:
    @hookimpl
    def keval_sample_facts(self, sample: Sample) -> dict[str, Any]:
        raise ConnectionError("no route")


class Diary:
    """Writes down what it is told, in the working directory."""

    @hookimpl
    def keval_run_started(self, directory: Path, manifest: Manifest) -> None:
        self._write(f"started {manifest.evaluation}")

    @hookimpl
    def keval_trial_finished(self, trial: Trial) -> None:
        self._write(f"finished {trial.id}")

    @hookimpl
    def keval_trial_scored(self, trial: Trial, scores: Sequence[ScoreLine]) -> None:
        self._write(f"scored {trial.id} {[(line.metric, line.judge, line.score.value) for line in scores]}")

    @hookimpl
    def keval_run_finished(self, directory: Path, summary: Summary) -> None:
        self._write(f"ended {len(summary.arms)}")

    def _write(self, line: str) -> None:
        with Path("diary.txt").open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")


@attrs.frozen
class Clumsy:
    """Fails at every trial; with `warns`, it also warns and logs."""

    says: str = "nobody listens"
    warns: bool = False

    @hookimpl
    def keval_trial_finished(self, trial: Trial) -> None:
        if self.warns:
            warnings.warn(self.says, UserWarning, stacklevel=1)
            logging.getLogger("clumsy").warning(self.says)
        raise ConnectionError(self.says)


class Later:
    @hookimpl
    async def keval_trial_finished(self, trial: Trial) -> None:
        return None


class WrongArgument:
    @hookimpl
    def keval_trial_finished(self, trail: Trial) -> None:
        return None


class Listener:
    """Writes down live events, in the working directory."""

    @hookimpl
    def keval_live_event(self, event: LiveEvent) -> None:
        with Path("events.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(attrs.asdict(event)) + "\n")


class Pacing:
    """Writes down how an endpoint changes, in the working directory."""

    @hookimpl
    def keval_endpoint_changed(self, model: str, at_once: int | None, down: bool) -> None:
        with Path("paces.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps([model, at_once, down]) + "\n")


@attrs.frozen
class Stagehand:
    """Prepares each attempt by a file `ready`, and writes down what it is told; fails at a sample if asked to."""

    path: Path
    fails_at: str = ""
    ends_badly: bool = False

    @hookimpl
    async def keval_trial_started(self, trial: TrialInfo) -> None:
        await asyncio.sleep(0)
        self._write(f"started {trial.id} {trial.attempt}")
        if trial.sample.id == self.fails_at:
            raise ConnectionError("no stage")
        (self.path / "ready").touch()

    @hookimpl
    def keval_trial_ended(self, trial: TrialInfo, failure: Failure | None) -> None:
        self._write(f"ended {trial.id} {trial.attempt} {failure and failure.kind}")
        (self.path / "ready").unlink(missing_ok=True)
        if self.ends_badly:
            raise ConnectionError("no broom")

    def _write(self, line: str) -> None:
        with (self.path / "stage.txt").open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")


class UnknownHook:
    @hookimpl
    def keval_sample_fact(self, sample: Sample) -> dict[str, Any]:
        return {}


@attrs.frozen
class Announcing:
    """Writes down each trial that is announced as finished."""

    path: Path

    @hookimpl
    def keval_trial_finished(self, trial: Trial) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(f"{trial.id}\n")
