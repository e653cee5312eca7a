"""The seams of agents, contexts, metrics and judges.

A plugin is an attrs class whose fields are its options; nothing needs to be inherited. keval finds the class through
the entry-point group of its seam. `keval.seams.infrastructure` has the seams of models, datasets, executors, proxies.
"""

from __future__ import annotations

from collections.abc import Awaitable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

import attrs

from keval.errors import FieldError, Problem, TrialError
from keval.records.cassettes import Volatile
from keval.records.scores import Rubric, Score
from keval.records.servers import McpServer, Sharing
from keval.records.transcript import Transcript
from keval.records.trial import Sample, Trial
from keval.seams.contexts import Context, JudgeContext, Provision, ServerSpec, TrialInfo

Flag: TypeAlias = Literal[
    "applies_middleware", "requests_by_proxy", "usage_by_proxy", "shows_server_instructions", "blocks"
]
"""What a class attribute that is true says of an agent, a judge or a metric.

`applies_middleware`: an agent or judge passes its model requests through `Endpoint.exchange` itself. If a run has
middleware, any other is given the endpoint of a proxy, and a placeholder for the key.

`requests_by_proxy`: only a proxy can see an agent's model requests, as a program of the framework's own sends them.
keval's proxy then always stands between it and its model, and reports the trial's first request in its place.

`usage_by_proxy`: only a proxy can count an agent's model calls and tokens, as nobody tells the adapter. With
`requests_by_proxy`, keval's proxy counts them. What the adapter reports of model calls replaces that.

`shows_server_instructions`: an agent's framework shows its model the `instructions` of MCP servers by itself. For any
other agent keval adds them to the system prompt.

`blocks`: a metric's plain `score` is called in a thread, for several trials at once.
"""


def has_flag(plugin: object, flag: Flag) -> bool:
    """Return whether a plugin says this of itself."""
    return getattr(plugin, flag, False) is True


@runtime_checkable
class Agent(Protocol):
    """Drives one agent framework. Group `keval.agents`.

    A class attribute `characteristics`, a mapping, describes the framework to metrics. A config can override single
    keys. One named `flag_option` names the option that the text of `--agent acme/parrot:TEXT` sets. See also `Flag`.
    """

    async def run(self, sample: Sample, context: Context) -> Transcript:
        """Ask the agent everything in `sample.asked`, in one session, and return what happened.

        Called for many trials at once. Open and close what belongs to a trial in the task that calls.

        Raises:
            TrialError: the trial cannot be completed; anything else that is raised is recorded as a defect.
        """
        ...


@runtime_checkable
class Conversation(Protocol):
    """An open session with an agent, which remembers what was said and what tools returned."""

    async def ask(self, text: str) -> None:
        """Send one message of the user and report what happens to the context's builder, within `builder.turn`.

        Raises:
            TrialError: there is no answer.
        """
        ...


@runtime_checkable
class ConversationalAgent(Protocol):
    """An agent that can be asked message by message. Its `run` is `keval.plugin.run_conversation`."""

    def open(self, context: Context) -> AbstractAsyncContextManager[Conversation]:
        """Open a session that begins with `context.history`.

        Raises:
            TrialError: an MCP server does not come up, or offers other tools than the condition's.
        """
        ...


async def run_conversation(agent: ConversationalAgent, sample: Sample, context: Context) -> Transcript:
    """Ask everything in `sample.asked` in one session and return the transcript. Raises what the session raises."""
    if context.history is not sample.history:
        context = attrs.evolve(context, history=sample.history)
    async with agent.open(context) as conversation:
        for text in sample.asked:
            await conversation.ask(text)
    return context.builder.transcript()


@runtime_checkable
class Preparable(Protocol):
    """A plugin that is slow to start, because it imports an SDK or builds a client."""

    async def prepare(self) -> None:
        """Start; called once, before the first trial, so that no trial's time includes it.

        Raises:
            PreflightError: it cannot start.
        """
        ...


@runtime_checkable
class Closable(Protocol):
    """A plugin that holds something for the whole run, such as an HTTP client."""

    async def aclose(self) -> None:
        """Release it; called once, after the last trial."""
        ...


@runtime_checkable
class ConcurrencyLimited(Protocol):
    """An agent of which only so many trials may run at once, for example because each starts a large process."""

    def max_concurrency(self) -> int:
        """Return how many. Further trials wait; waiting does not count as their time."""
        ...


@runtime_checkable
class PrerecordedAgent(Protocol):
    """An agent that returns answers which exist already.

    Its `run` gets no instructions, no servers and no time limit. An attribute `model` (`provider/name`) may say which
    model answered, for its price, and a true `partial` that samples without an answer are left out, and do not fail.
    """

    def check_answers(self, samples: Collection[str], conditions: Collection[str]) -> Iterable[Problem]:
        """Read the answers; called once, when the plan is made, with every id of the dataset.

        Returns the problems, each with its place: answers that cannot be read, or belong to no sample or condition.
        """
        ...

    def count_answers(self, sample: str, condition: str) -> int:
        """Return how many answers a sample has under a condition: `run` is called that often."""
        ...

    @property
    def digest(self) -> str:
        """The SHA-256 of what was recorded, for the run's manifest."""
        ...


@runtime_checkable
class MadeOfFiles(Protocol):
    """An agent that is a program or a function of the user's, in files of theirs."""

    def own_files(self) -> Iterable[Path]:
        """Return the files; the manifest has their SHA-256, so that a run that goes on tells which have changed."""
        ...


@runtime_checkable
class RefusesServers(Protocol):
    """An agent that can be given MCP servers only with some of its options."""

    def servers_refusal(self) -> str | None:
        """Return why it cannot be given any, and what to do; `None` if it can.

        Called once it is prepared, if a condition has servers: the run then ends before its first trial.
        """
        ...


@runtime_checkable
class DeclaresVolatile(Protocol):
    """An agent or judge whose model requests differ from run to run although nothing has changed."""

    volatile: Sequence[Volatile]
    """What a replay leaves out when it compares a request with the recorded one."""


@runtime_checkable
class ContextSource(Protocol):
    """A context provider that is up, shared by the trials of one condition."""

    @property
    def servers(self) -> Sequence[ServerSpec | McpServer]:
        """The servers that every trial gets. keval connects to each `ServerSpec` and lists its tools before the run."""
        ...

    def open(self, trial: TrialInfo) -> AbstractAsyncContextManager[Provision]:
        """Enter what the context gives to one attempt at a trial.

        The servers have the names of `servers`, and may differ in what they are told about the trial.

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
class FreezesOptions(Protocol):
    """A context provider that reads a file which may be another one when the run goes on, or on another machine."""

    def frozen_options(self) -> Mapping[str, Any]:
        """Return the options that hold what was read; called once, when the run is described.

        The run's manifest has them beside those that were written, mappings joined key by key. The provider that is
        constructed with both uses them, and does not read the file again.
        """
        ...


@runtime_checkable
class PlansSharing(Protocol):
    """A context provider that can say in a dry run whether trials will share its server."""

    def planned_sharing(self) -> Sharing | None:
        """Return whether they will, and why; `None` if that shows when the server starts."""
        ...


@runtime_checkable
class Metric(Protocol):
    """Scores a trial without a model. Group `keval.metrics`.

    A class attribute `scale` of type `Scale` is the range of its scores, by default 0 to 1, and `category` the heading
    under which tables list it. See also `Flag`.
    """

    def score(self, trial: Trial) -> Score | float | Awaitable[Score | float]:
        """Score one trial that did not fail. What is raised is recorded, and the score is unscored.

        A number, or true or false for 1 or 0, is a score without a reason.
        """
        ...


@runtime_checkable
class AgentChecker(Protocol):
    """A metric that reads the characteristics of agents, and checks them when the plan is made."""

    def check_characteristics(self, characteristics: Mapping[str, object]) -> Iterable[FieldError]:
        """Return what is wrong with the characteristics of one agent; paths are relative to them."""
        ...


@runtime_checkable
class AgentRater(Protocol):
    """A metric that is about agents rather than answers: what it says of each is a property, and nothing compares it.

    It may score answers as well; those scores are in the tables of means.
    """

    def rate_agent(self, characteristics: Mapping[str, Any]) -> Score | float:
        """Return the score of one agent before it answers, with the derivation as its reason; neutral if unknown."""
        ...


@runtime_checkable
class Judge(Protocol):
    """A model that grades a trial. Group `keval.judges`.

    A class attribute `providers` is a tuple of model providers. A config that names a model and no judge gets the judge
    that lists the model's provider; `"*"` stands for every provider that no other judge lists. A class attribute
    `kinds` names the kinds of rubrics that it grades by (see `keval.Rubric`), by default `("levels",)`. A class
    attribute `sees_tool_calls` says that its model is shown the tool calls of a trial, too.
    """

    async def grade(
        self, trial: Trial, rubrics: Sequence[Rubric], context: JudgeContext
    ) -> Mapping[str, Score | TrialError]:
        """Return a score per rubric name, each one of the rubric's levels or unscored. Called for many trials at once.

        If the judge failed at one rubric only, return the error in place of its score. The trial has no id, agent,
        condition or model, because a judge must not know whose answer it grades. Report model calls to
        `context.builder` as they happen, so that they are kept if the judge fails.

        Raises:
            TrialError: the judge cannot be reached. If it is retryable, the judge is asked again.
        """
        ...


@runtime_checkable
class ComparingJudge(Protocol):
    """A judge that compares each trial with its counterpart, the same one under another condition.

    It gets the counterpart, of the same agent, question and repetition, as `JudgeContext.against`, once all trials are
    finished, and grades by rubrics of the kind `preference`. Trials of the condition itself get the score 0 without
    being asked about: an answer is as good as itself. Where there is no counterpart, or it failed, there is no score.
    """

    against: str
    """The label of that condition, an option; `baseline` also stands for the baseline of the evaluation."""
