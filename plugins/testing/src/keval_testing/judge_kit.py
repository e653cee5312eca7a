"""The check of judges."""

from __future__ import annotations

import asyncio
import copy
import itertools
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, TypeAlias
from zlib import crc32

import attrs

from keval import Message, Rubric, Score, Transcript, Trial
from keval.errors import TrialError
from keval.score.judging import validate_grade
from keval.seams.blank_text import is_blank
from keval.seams.contexts import JudgeContext
from keval.seams.interfaces import ComparingJudge
from keval.store.serialization import dump, to_plain
from keval_testing.scripted_model import ReceivedRequest, Reply, Script, ScriptedModel, ScriptedReply, refuses, says
from keval_testing.subject import Subject, check_cancellation, excerpt, model_options, opened, rules_of, run_checks
from keval_testing.unusual_trials import odd_trials

JUDGE_RULES = rules_of("judge")
"""The rules of judges, each with how to mend one that breaks it."""

Judgement: TypeAlias = str | Callable[[ReceivedRequest, int], ScriptedReply]
"""What a model says to give each rubric a level: a text with `{level}` in its place, or a reply to a request."""

RUBRICS = (
    Rubric("accuracy", "Is the answer right?", {1: "No.", 2: "In part.", 3: "Yes."}, needs_answer=True),
    Rubric("testing/tone", "Is the answer friendly?", {1: "No.", 2: "A little.", 3: "Yes.", 5: "Very."}),
)
"""The rubrics that trials are graded by."""
COMPARISONS = (
    Rubric("better", "Which is right?", {-1: "Not it.", 0: "Both.", 1: "It."}, needs_answer=True, kind="preference"),
    Rubric("testing/nicer", "Which is friendly?", {-1: "Not it.", 0: "Both.", 1: "It."}, kind="preference"),
)
"""The rubrics of judges that compare."""
OTHER_ANSWER = "The answer under another condition."
"""What judges that compare are handed beside each trial."""
# Neither of the two has this level.
_NO_LEVEL = 9
_LONG, _PATIENCE = 3600.0, 30.0
"""Seconds for which a model is silent, and in which all trials are graded at once."""


def check_judge(
    judge: str | type | object, *, judgement: Judgement | None = None, options: Mapping[str, Any] | None = None
) -> None:
    """Check a judge, given by its name, as a class or as an instance, in front of a scripted model.

    `judgement` is what the model says; a judge without an option of type `Model` needs none. `options` are those of a
    config, but for models. A judge that compares is handed `OTHER_ANSWER`, and the levels are -1, 0 and 1.

    Raises:
        BrokenRulesError: it breaks rules; the message names each one, what was seen, and how to mend it.
        PluginError: no such judge is installed, `options` do not construct it, or the package that serves the scripted
            model is not installed.
        TypeError: it has a model, and no `judgement` is given.
    """
    subject = Subject.of("keval.judges", judge, options, JUDGE_RULES)
    models = model_options(subject.target)
    if models and judgement is None:
        raise TypeError("give `judgement`, what the judge's model is to say: such as 'level: {level}'")
    subject = attrs.evolve(subject, options={**dict.fromkeys(models, "scripted/model"), **subject.options})
    if subject.check_options():
        compares = isinstance(subject.new(), ComparingJudge)
        check = _Check(subject, tuple(models), judgement or "", compares)
        run_checks(subject, check.served(first_use=True), check.served)
    subject.finish()


def _no_judgements(says_level: Callable[[int], Reply]) -> Mapping[str, Reply]:
    """Return replies by which no answer can be graded."""
    return {
        "an empty reply": says(" "),
        "a refusal in words": says("I am sorry, but I cannot grade this answer."),
        "other JSON": says('{"error": null, "items": [1, 2, 3]}'),
        "a level that the rubrics do not have": says_level(_NO_LEVEL),
        "a reply that was cut off": says("The answer", cut="length"),
    }


@attrs.frozen
class _Check:
    subject: Subject
    models: tuple[str, ...]
    judgement: Judgement
    compares: bool

    @property
    def _rubrics(self) -> Sequence[Rubric]:
        return COMPARISONS if self.compares else RUBRICS

    @property
    def _sure(self) -> int:
        """A level that no judge gives where it is not told any."""
        return 1 if self.compares else 2

    def _context(self, trial: Trial) -> JudgeContext:
        spoken = Transcript((Message("user", trial.question), Message("assistant", OTHER_ANSWER)))
        return JudgeContext(seed=7, against=attrs.evolve(trial, transcript=spoken) if self.compares else None)

    async def served(self, *, first_use: bool = False) -> None:
        """Check the judge in front of a scripted model, if it has one."""
        async with ScriptedModel.serve() if self.models else nullcontext() as served:
            await (self._first_use(served) if first_use else self._run(served))

    def _new(self, script: Script | None) -> Any:
        judge = self.subject.new()
        return judge if script is None else attrs.evolve(judge, **dict.fromkeys(self.models, script.model))

    def _level(self, level: int) -> Reply:
        """Return the reply that gives each rubric this level."""
        return lambda request: self._said(request, level)

    def _said(self, request: ReceivedRequest, level: int) -> ScriptedReply:
        told = self.judgement
        return says(told.replace("{level}", str(level))) if isinstance(told, str) else told(request, level)

    def _by_content(self, request: ReceivedRequest) -> ScriptedReply:
        """Return the reply to a request that gives a level by what it asks, so that no two trials are mistaken."""
        # By a checksum, as Python's own hash of a text is another one in each process.
        levels = (-1, 0, 1) if self.compares else (1, 2, 3)
        return self._said(request, levels[crc32("\n".join(request.texts).encode()) % 3])

    async def _first_use(self, served: ScriptedModel | None) -> None:
        """Grade one trial, whose grades show whether the judge reads its model at all."""
        script = served.script(itertools.repeat(self._level(self._sure))) if served else None
        trial = odd_trials()[0]
        context = self._context(trial)
        async with opened(self._new(script)) as judge:
            outcome = await self._graded(judge, trial, context)
        grades = self._valid(outcome, "for an ordinary answer", self._rubrics)
        if script is None:
            return
        wrong = {name: _value(grade) for name, grade in grades.items() if _value(grade) != self._sure}
        if wrong and not self.subject.found:
            told = f"of a model that gives each rubric level {self._sure} it read {wrong}"
            self.subject.broken("grades", f"{told}; is `judgement` what it asks for?")
        if not context.builder.judgement(1, []).model_calls:
            self.subject.broken("model calls", f"it asked its model {len(script.requests)} times, and told of no call")

    async def _run(self, served: ScriptedModel | None) -> None:
        script = served.script(itertools.repeat(self._by_content)) if served else None
        async with opened(self._new(script)) as judge:
            alone: dict[str, object] = {}
            for trial in odd_trials():
                alone[trial.id] = await self._alone(judge, trial, script)
            if self.subject.found:
                return
        await self._check_together(served, alone)
        if served is not None:
            await self._check_replies(served)
            await self._check_cancellation(served)

    async def _check_together(self, served: ScriptedModel | None, alone: Mapping[str, object]) -> None:
        """Grade all trials at once: the model answers nobody until it is asked about each of them."""
        trials, asked, everybody = odd_trials(), itertools.count(1), asyncio.Event()

        async def answer(request: ReceivedRequest) -> ScriptedReply:
            if next(asked) >= len(trials):
                everybody.set()
            await everybody.wait()
            return self._by_content(request)

        async with opened(self._new(served.script(itertools.repeat(answer)) if served else None)) as judge:
            grading = asyncio.gather(*(self._graded(judge, trial, self._context(trial)) for trial in trials))
            try:
                together = await asyncio.wait_for(grading, _PATIENCE)
            except TimeoutError:
                # The model waits for all trials, so a judge that takes one after the other never gets a reply.
                self.subject.broken("concurrency", "it does not ask about another trial while it waits for its model")
                return
        for trial, outcome in zip(trials, together, strict=True):
            if outcome != alone[trial.id]:
                self._differs("concurrency", f"{trial.sample.id}, graded with others", alone[trial.id], outcome)

    async def _check_cancellation(self, served: ScriptedModel) -> None:
        """Cancel a judgement while the model is silent, and have another trial graded by the same judge."""
        trial, late = odd_trials()[0], [True]

        def answer(request: ReceivedRequest) -> ScriptedReply:
            return attrs.evolve(self._said(request, self._sure), delay=_LONG if late[0] else 0.0)

        async with opened(self._new(served.script(itertools.repeat(answer)))) as judge:
            await check_cancellation(self.subject, lambda: judge.grade(trial, self._rubrics, self._context(trial)))
            late[0] = False
            outcome = await self._graded(judge, trial, self._context(trial))
            grades = self._valid(outcome, "after a cancelled one", self._rubrics)
            if any(_value(grade) != self._sure for grade in grades.values()):
                self.subject.broken("cancellation", f"after a call that was cancelled it gave {excerpt(outcome)}")

    async def _alone(self, judge: Any, trial: Trial, script: Script | None) -> object:
        """Grade a trial twice, and return what came of it."""
        outcomes, asked = [], []
        before = copy.deepcopy(to_plain(trial))
        for _ in range(2):
            begun = len(script.requests) if script else 0
            outcomes.append(await self._graded(judge, trial, self._context(trial)))
            asked.append([request.raw for request in script.requests[begun:]] if script else [])
        # One finding for one cause: what follows may be due to what comes before it here.
        if dump(to_plain(trial)) != dump(before):
            self.subject.broken("input unchanged", f"it changed the trial with {trial.sample.id}")
        elif asked[0] != asked[1]:
            self.subject.broken("determinism", f"it asked otherwise when {trial.sample.id} was graded again")
        elif outcomes[0] != outcomes[1]:
            self._differs("determinism", f"{trial.sample.id}, graded again", *outcomes)
        self._valid(outcomes[0], f"for {trial.sample.id}", self._asked_by(trial))
        return outcomes[0]

    def _differs(self, rule: str, what: str, first: object, second: object) -> None:
        self.subject.broken(rule, f"{what}, got {excerpt(second)} instead of {excerpt(first)}")

    async def _check_replies(self, served: ScriptedModel) -> None:
        trial = odd_trials()[0]
        for what, reply in _no_judgements(self._level).items():
            outcome = await self._asked(served, reply, trial)
            if isinstance(outcome, Exception) and not isinstance(outcome, TrialError):
                self.subject.broken("no judgement", f"for {what} it raised {excerpt(outcome)}")
            for name, grade in outcome.items() if isinstance(outcome, Mapping) else ():
                if _value(grade) is not None:
                    self.subject.broken("no judgement", f"for {what} it gave {name} the value {_value(grade):g}")
        for status, again in ((429, True), (500, True), (401, False)):
            outcome = await self._asked(served, refuses(status, retry_after=7 if status == 429 else None), trial)
            errors = [outcome] if not isinstance(outcome, Mapping) else [*outcome.values()]
            for error in errors:
                if not isinstance(error, TrialError):
                    self.subject.broken("failures", f"for HTTP status {status} of its model it gave {excerpt(error)}")
                elif error.retryable != again:
                    told = f"HTTP status {status} of its model is {'' if error.retryable else 'not '}to be retried"
                    self.subject.broken("failures", told)

    async def _asked(self, served: ScriptedModel, reply: Reply, trial: Trial) -> object:
        async with opened(self._new(served.script(itertools.repeat(reply)))) as judge:
            return await self._graded(judge, trial, self._context(trial))

    def _valid(self, outcome: object, where: str, rubrics: Sequence[Rubric]) -> Mapping[str, object]:
        """Check what a judge returned for a trial, and return the grades by rubric."""
        if not isinstance(outcome, Mapping):
            self.subject.broken("grades", f"{where} it gave {excerpt(outcome)}")
            return {}
        for rubric in rubrics:
            grade = outcome.get(rubric.name, "no score")
            if isinstance(grade, TrialError):
                continue
            verdict = validate_grade(grade, rubric)
            if verdict.failure is not None:
                self.subject.broken("grades", f"{where}, {rubric.name}: {verdict.failure.message}")
            elif verdict.score.value is None and is_blank(verdict.score.reason):
                self.subject.broken("reasons", f"{where} {rubric.name} has no value, and no reason")
        return outcome

    def _asked_by(self, trial: Trial) -> list[Rubric]:
        """Return the rubrics by which a run has a trial graded."""
        return [rubric for rubric in self._rubrics if trial.sample.answer is not None or not rubric.needs_answer]

    async def _graded(self, judge: Any, trial: Trial, context: JudgeContext) -> object:
        """Return the grades of a trial, or what was raised."""
        try:
            return await judge.grade(trial, self._asked_by(trial), context)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - what a plugin raises is what is looked for
            return error


def _value(grade: object) -> float | None:
    return grade.value if isinstance(grade, Score) else None
