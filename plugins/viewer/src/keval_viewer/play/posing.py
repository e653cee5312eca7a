"""Posing a question: what a person asks becomes a sample, whose facts are looked up once for all columns."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence

import attrs

from keval import Sample
from keval.plugin import InteractiveRun, suggestion
from keval_viewer.play.records import Asked, PlayError

__all__ = ["Posed", "pose"]


@attrs.define(eq=False)
class Posed:
    """A question that is asked.

    `given` is its sample as the person gave it, `asked` has the facts of hook plugins, too, and `written` is that as it
    stands in the run, without secrets. `texts` are what is new in it: the last ones of `asked.asked`. `trials` are the
    ids of its trials.
    """

    given: Sample
    asked: Sample
    written: Sample
    texts: tuple[str, ...]
    conversation: int
    turn: int
    is_chosen: bool = False
    trials: list[str] = attrs.field(factory=list)


async def pose(
    asked: Asked, present: Sequence[Posed], before: Sequence[Posed], run: InteractiveRun, conversation: int
) -> Posed:
    """Make a sample of what is asked, and write it.

    `present` are the questions of the present conversation, and `before` are all of the run. A sample that was asked
    before keeps the facts that it had.

    Raises:
        PlayError: there is no such sample, or no text.
        PreflightError: a hook plugin has no facts about it.
        RunError: it cannot be written.
    """
    if asked.sample is not None:
        given = _chosen(asked.sample, run)
        again = next((each for each in before if each.is_chosen and each.given.id == given.id), None)
        if again is not None:
            return attrs.evolve(again, conversation=conversation, turn=0, trials=[])
        return await _posed(given, given.asked, conversation, 0, run, is_chosen=True)
    if not asked.text.strip():
        raise PlayError("there is no question; type one, or choose a sample")
    answer = asked.answer if asked.answer and asked.answer.strip() else None
    taken = {*run.dataset.ids, *(each.given.id for each in before)}
    if not present:
        given = Sample(_first_id(taken), asked.text, answer, facts=asked.facts, metadata=asked.metadata)
    else:
        first, last = present[0].given, present[-1].given
        given = attrs.evolve(
            last,
            id=_following_id(first.id, len(present), taken),
            answer=answer,
            turns=(*last.turns, asked.text),
            facts={**last.facts, **asked.facts},
            metadata={**last.metadata, **asked.metadata},
            expect=(),
        )
    return await _posed(given, (asked.text,), conversation, len(present), run)


async def _posed(
    given: Sample, texts: tuple[str, ...], conversation: int, turn: int, run: InteractiveRun, *, is_chosen: bool = False
) -> Posed:
    asked = await run.prepared(given)
    return Posed(given, asked, run.add_sample(asked), texts, conversation, turn, is_chosen)


def _chosen(id: str, run: InteractiveRun) -> Sample:
    samples = run.dataset
    try:
        return samples.named(id)
    except KeyError:
        hint = suggestion(id, samples.ids) or f"; the dataset has {len(samples)} samples"
        raise PlayError(f"no sample has the id {id!r}{hint}") from None


def _first_id(taken: Collection[str]) -> str:
    """Return the id of a question that begins a conversation: q1, q2 and so on."""
    return next(name for number in itertools.count(1) if (name := f"q{number}") not in taken)


def _following_id(first: str, turn: int, taken: Collection[str]) -> str:
    """Return the id of a follow-up: that of the conversation's first question, and its number in it, from 2."""
    name = f"{first}.{turn + 1}"  # which is taken if a sample of the dataset began two conversations
    others = (f"{name}-{again}" for again in itertools.count(2))
    return next(each for each in itertools.chain([name], others) if each not in taken)
