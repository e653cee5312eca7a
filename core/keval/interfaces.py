"""The seams: what an agent adapter, a context provider, a metric, a judge and a model provider must offer.

A plugin is an attrs class whose fields are its options; nothing needs to be inherited. A class is found through the
entry-point group of its seam.
"""

from __future__ import annotations

from collections.abc import Awaitable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol, runtime_checkable

from keval.contexts import Context, ToolOffer
from keval.errors import Problem, TrialError
from keval.judging import Judging
from keval.models import Endpoint
from keval.records import Sample, Transcript, Trial
from keval.scores import Rubric, Score

__all__ = [
    "Agent",
    "Closable",
    "ContextProvider",
    "ContextSource",
    "Judge",
    "Limited",
    "Metric",
    "ModelProvider",
    "Preparable",
    "Recording",
]


@runtime_checkable
class Agent(Protocol):
    """Drives one agent framework. Group `keval.agents`."""

    async def run(self, sample: Sample, context: Context) -> Transcript:
        """Ask the agent everything in `sample.asked`, in one session, and return what happened.

        Called for many trials at once. What belongs to a trial is opened and closed in the task that calls.

        Raises:
            TrialError: the trial cannot be completed; anything else that is raised is recorded as a defect.
        """
        ...


@runtime_checkable
class Preparable(Protocol):
    """An agent or judge that is slow to begin: it imports an SDK or builds a client."""

    async def prepare(self) -> None:
        """Begin; called once, before the first trial, so that no trial's time has it.

        Raises:
            PreflightError: it cannot begin.
        """
        ...


@runtime_checkable
class Closable(Protocol):
    """An agent or judge that holds something for the whole run, such as an HTTP client."""

    async def aclose(self) -> None:
        """Release it; called once, after the last trial."""
        ...


@runtime_checkable
class Limited(Protocol):
    """An agent of which only so many trials may run at once, as each takes a process, say."""

    def at_once(self) -> int:
        """How many. Further trials wait, before their time begins."""
        ...


@runtime_checkable
class Recording(Protocol):
    """An agent whose answers exist already: it says itself how many it has.

    As nobody is asked, `run` is given no instructions and no servers, and no time limit.
    """

    def check_answers(self, samples: Collection[str], conditions: Collection[str]) -> Iterable[Problem]:
        """Read what was recorded; called once, when the plan is made, with every id of the dataset.

        Returns what is wrong with it, each at its place: what cannot be read, and what belongs to no sample or
        condition.
        """
        ...

    def count_answers(self, sample: str, condition: str) -> int:
        """Say how many answers there are to a sample under a condition: so many times is `run` called, or else once."""
        ...

    @property
    def digest(self) -> str:
        """The SHA-256 of what was recorded, for the run's manifest."""
        ...


@runtime_checkable
class ContextSource(Protocol):
    """A context provider that is up, shared by the trials of one condition."""

    @property
    def offers(self) -> Sequence[ToolOffer]:
        """What each server offers, as listed when it came up."""
        ...

    def open(self, sample: Sample, trial: str) -> AbstractAsyncContextManager[Context]:
        """Enter the context of one attempt at a trial; of the result, `instructions` and `servers` are used.

        Raises:
            TrialError: the context cannot be given to this trial now.
        """
        ...


@runtime_checkable
class ContextProvider(Protocol):
    """Gives agents instructions and MCP servers. Group `keval.contexts`."""

    def start(self, label: str) -> AbstractAsyncContextManager[ContextSource]:
        """Bring up what the trials of one condition share; `label` is the context's name in the config.

        Raises:
            PreflightError: it does not come up; the message shows what the server said.
        """
        ...


@runtime_checkable
class Metric(Protocol):
    """Scores a trial without a model. Group `keval.metrics`.

    A class attribute `scale` of type `Scale` says in which range; without one it is 0 to 1.
    """

    def score(self, trial: Trial) -> Score | Awaitable[Score]:
        """Score one trial that did not fail. What is raised is recorded, and the score is unscored."""
        ...


@runtime_checkable
class Judge(Protocol):
    """A model that grades a trial. Group `keval.judges`."""

    async def grade(
        self, trial: Trial, rubrics: Sequence[Rubric], judging: Judging
    ) -> Mapping[str, Score | TrialError]:
        """Return a score per rubric name, each one of the rubric's levels or unscored. Called for many trials at once.

        Where the judge failed at one rubric alone, the error stands in the place of its score. The trial has neither
        id, agent, condition nor model: nobody who judges is to know. What it took is reported to `judging.recorder` as
        it happens, so that it is kept when the judge fails.

        Raises:
            TrialError: the judge cannot be reached; retried as a trial is, then recorded, and unscored.
        """
        ...


@runtime_checkable
class ModelProvider(Protocol):
    """Resolves the names of one provider's models. Group `keval.models`, found without arguments."""

    def open(self, names: Sequence[str], seed: int) -> AbstractAsyncContextManager[Mapping[str, Endpoint]]:
        """Yield an endpoint per name, for the length of the run.

        Raises:
            PreflightError: a key is not set, or the models cannot be served.
        """
        ...
