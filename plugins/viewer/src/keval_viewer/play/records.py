"""What a play is made of: columns, questions, their answers, edits, and how the columns stand."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

import attrs

from keval import KevalError, Sample, ScoreLine, Trial
from keval_analysis.findings.effects import Effect
from keval_analysis.findings.summary import ArmScore, ArmTrials, ScorerScale
from keval_viewer.interactive.interactive_run import OfferedTool

AnswerState: TypeAlias = Literal["answering", "scoring", "done", "failed", "stopped", "left_out"]
"""`left_out`: the budget did not let the column be asked. All but the first two are final."""


class PlayError(KevalError):
    """A play cannot do what was asked, or not in its present state."""


@attrs.frozen
class Column:
    """One agent under one condition, with a conversation of its own.

    `model` is `provider/name`. `tools` are the names of the tools that it is offered. `is_level` says that its
    conversation has all that was asked in the present one, so that a follow-up can go to it; a column is not level when
    it was switched on in between, failed, or was stopped: `Play.ask_again` makes it so. `remembers` is false for an
    agent that cannot hold a conversation: it is asked the whole of it again with each follow-up.
    """

    agent: str
    condition: str
    model: str | None = None
    simulated: bool = False
    tools: tuple[str, ...] = ()
    is_on: bool = True
    is_answering: bool = False
    is_level: bool = True
    remembers: bool = True

    @property
    def id(self) -> str:
        """Its name: `agent/condition`."""
        return f"{self.agent}/{self.condition}"


@attrs.frozen
class QuestionInput:
    """What a person asks: a text, or a sample of the dataset by its id, which begins a new conversation.

    `answer` is the golden answer, if there is one; `sample` brings its own. `facts` and `metadata` are what prompts,
    servers and metrics may use, as those of a sample. Prompts and servers see those of a conversation's first question
    only; a follow-up has them, too, with what is given besides.
    """

    text: str = ""
    sample: str | None = None
    answer: str | None = None
    facts: Mapping[str, Any] = attrs.field(factory=dict)
    metadata: Mapping[str, Any] = attrs.field(factory=dict)


@attrs.frozen
class PlayedAnswer:
    """What one column made of a question. `trial` is the id of its trial, and `repetition` counts from 1.

    `since` is the number in the play's feed from which events of the trial are to be read. `record` is the trial as it
    was written, when it is finished. Its scores come one by one: first those of metrics, then those of judges. `cost`
    is what the answer cost in US dollars, and `judging_cost` what it cost to grade; `None` while or if that is unknown.
    `problem` says why there is no answer.
    """

    column: str
    trial: str
    repetition: int
    state: AnswerState
    since: int
    record: Trial | None = None
    scores: tuple[ScoreLine, ...] = ()
    cost: float | None = None
    judging_cost: float | None = None
    problem: str = ""

    @property
    def text(self) -> str:
        """The answer; empty while there is none."""
        return self.record.output if self.record else ""

    @property
    def seconds(self) -> float | None:
        """How long the agent took, from the question to the last word, measured alike for all; `None` if unknown."""
        return self.record.transcript.duration if self.record and self.record.transcript else None


@attrs.frozen
class Question:
    """What was asked, as a sample with its facts, and the answers, in the order in which columns were asked.

    `conversation` counts from 1 and `turn` from 0. `is_chosen` says that it is a sample of the dataset. A column that
    was asked again has several answers.
    """

    sample: Sample
    conversation: int
    turn: int
    is_chosen: bool = False
    answers: tuple[PlayedAnswer, ...] = ()

    @property
    def id(self) -> str:
        """The sample's id: `q3`, or `q3.2` for its first follow-up, unless it is of the dataset."""
        return self.sample.id

    @property
    def text(self) -> str:
        """What was asked last."""
        return self.sample.asked[-1]


@attrs.frozen
class EditableCondition:
    """What can be edited of a condition: its prompt, as written in the config, and the descriptions of its tools."""

    label: str
    system_prompt: str
    contexts: tuple[str, ...]
    tools: tuple[OfferedTool, ...]


@attrs.frozen
class Edit:
    """A change of what is compared. It begins a new run, as a manifest does not change, and new conversations.

    `models` maps agents to `provider/name`. `condition` is the one that is changed; with `name`, it stays and the
    changed one stands beside it. `system_prompt` is a template, as in a config. `descriptions` maps tools to what
    agents are told of them.
    """

    models: Mapping[str, str] = attrs.field(factory=dict)
    condition: str | None = None
    name: str | None = None
    system_prompt: str | None = None
    descriptions: Mapping[str, str] = attrs.field(factory=dict)


@attrs.frozen
class KeptSample:
    """A question that was appended to a dataset: the file, the id that it has there, and what was written."""

    path: Path
    id: str
    written: str


@attrs.frozen
class Standings:
    """How the columns stand after the questions of the run so far.

    `arms` has each column's mean by each of the `scorers` with its interval, and `trials` what happened to its trials.
    `differences` are those of the other columns from the column `against` by each scorer, paired by question. With too
    few questions an interval is `None` and the verdict `unknown`.
    """

    questions: int
    against: str | None
    scorers: tuple[ScorerScale, ...]
    arms: tuple[ArmScore, ...]
    trials: tuple[ArmTrials, ...]
    differences: tuple[Effect, ...] = ()
