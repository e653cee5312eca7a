"""Words that no answer of an evaluation may have: the key `banned`, the option `--ban`, and what a run found."""

from collections.abc import Iterator, Mapping
from typing import Any

import attrs
import click

from keval.plugin import ActiveRun, CommandCall, CommandOptions, Evaluation, PlanCheck, Problem, hookimpl


@attrs.frozen
class Banned:
    """`banned` has words that no answer may have."""

    banned: tuple[str, ...] = ()

    @property
    def written(self) -> Mapping[str, Any]:
        """The words of the config and of options, as the manifest keeps them."""
        return {"banned": [*self.banned]}

    def check_config(self, evaluation: Evaluation) -> Iterator[Problem]:
        """Yield what is no word."""
        for at, word in enumerate(self.banned):
            if not word.strip():
                yield evaluation.source.problem(("banned", at), "expected a word")

    @hookimpl
    def keval_check_plan(self, check: PlanCheck) -> None:
        for sample in check.samples or ():
            if found := self._found(sample.answer or ""):
                check.problem(("banned",), f"the golden answer of {sample.id!r} has {found[0]!r}", at_key=True)
        if len({word.lower() for word in self.banned}) < len(self.banned):
            check.notice(("banned",), "a word is banned twice", at_key=True)

    @hookimpl
    def keval_run_summarised(self, run: ActiveRun) -> Mapping[str, Any]:
        answers = [trial.output for trial in run.run.trials() if trial.failure is None]
        counts = {word: sum(word in self._found(answer) for answer in answers) for word in self.banned}
        return {"banned words": {"answers": len(answers), "counts": counts}}

    def _found(self, text: str) -> list[str]:
        return [word for word in self.banned if word.lower() in text.lower()]


def sentences(part: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a report says of banned words."""
    for word, count in part["counts"].items():
        yield f"{word} is in {count} of {part['answers']} answers"


def _apply(call: CommandCall, ban: tuple[str, ...]) -> None:
    def banning(evaluation: Evaluation) -> Evaluation:
        return evaluation.with_section(Banned((*evaluation.section(Banned).banned, *ban)))

    if ban:
        call.changes.append(banning)


OPTIONS = CommandOptions(
    [click.option("--ban", multiple=True, metavar="WORD", help="Count the answers with this word. Repeatable.")], _apply
)
