"""Making the runs of a check, one after the other, within one budget."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, Protocol

import attrs

from keval import Run
from keval.cli.messages import redactor, tell
from keval.cli.session import run_to_end
from keval.config.evaluation import Budget
from keval.plan.plan import Plan
from keval_instrument.check_folder import CheckFolder
from keval_instrument.material import Material, RunName
from keval_instrument.making import WrittenFiles, asked_plan, budget_left, draw_samples, written_plan
from keval_instrument.settings import settings_of
from keval_instrument.material import WrittenAnswer
from keval_viewer.interactive.served_model import ServedModel


class PerformRun(Protocol):
    """Runs a plan to its end; `interrupted` is called with the run if that does not come."""

    def __call__(self, plan: Plan, interrupted: Callable[[Run], None], *, record: bool) -> Run: ...


@attrs.define
class RunMaker:
    """Makes the runs of a check of the evaluation that `plan` is of, and notes each in the folder of the check."""

    plan: Plan
    folder: CheckFolder
    perform: PerformRun
    material: Material = attrs.field(init=False)
    budget: Budget = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.material = Material(plan=self.plan)
        own = settings_of(self.plan.evaluation).budget
        self.budget = own if own != Budget() else self.plan.evaluation.budget

    def make(self, wanted: Collection[RunName]) -> Material:
        """Make the runs that are wanted; `restyled` needs `asked`. Raises KevalError."""
        samples = draw_samples(self.plan)
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
        run = self.perform(found, lambda run: self._note(name, run), record=name == "asked")
        self._note(name, run)
        self.budget = budget_left(self.budget, run)

    def _note(self, name: RunName, run: Run) -> None:
        noted: dict[str, Any] = {name: run}
        self.material = attrs.evolve(self.material, **noted)
        self.folder.keep(self.material)

    def _damaged(self, samples: Sequence[str]) -> Plan | str:
        from keval_instrument.damages import written_answers  # as all that only some checks need

        evaluation, found = self.plan.evaluation, [self.plan.samples.named(name) for name in samples]
        if all(sample.answer is None for sample in found):
            return "no sample has a golden answer; `dataset.answer_key` names its key"
        answers = [*written_answers(found, seed=evaluation.execution.seed)]
        if settings_of(evaluation).model is not None and not self._lacks_scorers:
            answers = run_to_end(self._by_model(answers, samples))
        return self._written("damaged", "golden", answers)

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
        found = WrittenFiles(
            self.folder.write_samples(name, map(self.plan.samples.named, answered)),
            self.folder.write_answers(name, answers, self.material.asked),
            (*conditions,),
        )
        return written_plan(self.plan, answered, found, self.budget)

    async def _by_model(self, answers: Sequence[WrittenAnswer], samples: Sequence[str]) -> list[WrittenAnswer]:
        """Have the model that the config names damage golden answers, and count what that takes."""
        from keval_instrument.modelled import modelled_answers

        evaluation = attrs.evolve(self.plan.evaluation, budget=self.budget)
        found = [self.plan.samples.named(name) for name in samples]
        async with ServedModel.open(evaluation, settings_of(evaluation).model, redactor()) as model:
            made = await modelled_answers(answers, found, model)
            tokens, usd = self.budget.tokens, self.budget.usd
            self.budget = attrs.evolve(
                self.budget,
                tokens=None if tokens is None else max(0, tokens - model.tokens),
                usd=None if usd is None else max(0.0, usd - (model.cost.usd or 0.0)),
            )
        tell(made.told)
        return [*made.answers]
