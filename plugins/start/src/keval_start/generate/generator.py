"""The generator: explores tools round by round, has questions written about what they return, and checks each."""

from __future__ import annotations

import asyncio
import hashlib
import re
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import product
from textwrap import shorten
from typing import Any

import attrs

from keval.plugin import ServerLostError
from keval.records.formats import counted
from keval_start.generate.checks import KnownQuestions, has_all, names_today, states, unsupported
from keval_start.generate.requests import AT_ONCE, DraftQuestion, UnanswerableDraft, Writer
from keval_start.generate.toolbox import Call, ProposedCall, Toolbox, changed, made

NOT_KNOWN = "This is not known: nothing that the tools return says it."
"""The golden answer to a question that the tools cannot answer."""

_FRUITLESS = 3
"""Rounds without a new question, or that lost a server, in a row, after which no more are begun."""
_MOST_SHOWN = 8
"""Results of which questions are written in one request."""
_MOST_EARLIER = 60
"""Calls before these of which a model sees the beginnings of results, to propose others."""
_APART = 1.1
"""Seconds from a call to the same call again, at least: times are often written to the second."""
_LONGEST_KEPT = 2_000
"""Characters of a result that a question's proof keeps."""

_LONGEST_ERROR = 120
"""Characters of an error that says why a tool has no question."""

_MAY_WRITE = "it may change something, as it does not say that it only reads (--allow-writes calls it)"
_NO_CALL = "no call that was made and succeeded is named as its proof"
_NO_EVIDENCE = "the passage quoted as its proof is in no result"
_UNSUPPORTED = "its answer has a number or a name that no result has"
_TODAY = "its answer names today's date or day"
_NEAR = "it is nearly the same as another question"
_CHANGED = "its calls gave other results the second time"
_LOST = "a server was lost when its calls were made again"
_FOUND = "it should be unanswerable, but a result has all that it seeks"
_ANOTHER = "it is for another skill or tool, or another kind of question, than was asked for"
_SEEKS_NOTHING = "it should be unanswerable, but names neither what it seeks nor a call that would find it"


@attrs.frozen
class Question:
    """A question that passed all checks, with the calls that prove its golden answer, or what is expected instead."""

    id: str
    question: str
    answer: str
    proof: tuple[Call, ...]
    evidence: str = ""
    unanswerable: bool = False
    expect: Mapping[str, Any] | None = None

    def record(self, model: str, question_key: str, answer_key: str) -> dict[str, Any]:
        """Return the question as a dataset has it, waiting for a person."""
        if self.expect is not None:
            asked = {"id": self.id, question_key: self.question, "expect": self.expect}
            return {**asked, "accepted": False, "generated_by": model}
        return {
            "id": self.id,
            question_key: self.question,
            answer_key: self.answer,
            "accepted": False,
            **({"unanswerable": True} if self.unanswerable else {}),
            "proof": [self._proof(call) for call in self.proof],
            "generated_by": model,
        }

    def _proof(self, call: Call) -> dict[str, Any]:
        says_it = bool(self.evidence) and states([call], self.evidence)
        return {
            "tool": call.proposed.tool,
            "arguments": call.proposed.arguments,
            "result": _excerpt(call.text, self.evidence),
            **({"evidence": self.evidence} if says_it else {}),
        }


@attrs.define(eq=False)
class Generator:
    """Makes questions until there are enough, or no more come.

    `keep` is given the questions of each round, and `tell` what was done. `taken` are ids that others have. `dropped`
    counts questions by the reason why they were dropped, and replies of the model that could not be used. `used` are
    the tools by whose results questions are proved, from the start those of other questions of the dataset. `targets`
    are the skills and tools that routed questions are for, which is expected in these `conditions`.
    """

    toolbox: Toolbox
    writer: Writer
    known: KnownQuestions
    taken: set[str]
    keep: Callable[[Sequence[Question]], object]
    tell: Callable[[str], object]
    dropped: Counter[str]
    used: set[str]
    targets: Mapping[str, str] = attrs.field(factory=dict)
    conditions: Sequence[str] = ()
    made: list[Question] = attrs.field(factory=list, init=False)
    calls: list[Call] = attrs.field(factory=list, init=False)
    _why: dict[str, str] = attrs.field(factory=dict, init=False)
    _uses: Counter[int] = attrs.field(factory=Counter, init=False)
    _latest: float = attrs.field(default=0.0, init=False)
    _lost: int = attrs.field(default=0, init=False)
    _routed: Counter[tuple[str, bool]] = attrs.field(factory=Counter, init=False)

    async def run(self, answerable: int, unanswerable: int, routed: int) -> None:
        """Make so many questions that the tools answer, that they do not, and that need a target, or are near-misses.

        Raises:
            TrialError: the model gives no reply, or a server is lost again and again. What was made is kept.
        """
        await self._rounds(answerable, self._answerable)
        await self._rounds(len(self.made) + unanswerable, self._unanswerable)
        await self._rounds(len(self.made) + routed, self._routing)

    @property
    def unused(self) -> dict[str, str]:
        """The tools that no question uses, and why."""
        writing = dict.fromkeys(self.toolbox.left_out, _MAY_WRITE)
        return {name: self._idle(name) for name in self.toolbox.tools if name not in self.used} | writing

    def _idle(self, tool: str) -> str:
        found = [call for call in self.calls if call.proposed.tool == tool]
        if not found:
            return "no call of it was made"
        if all(call.failed for call in found):
            return f"every call was an error: {shorten(found[-1].text, _LONGEST_ERROR, placeholder=' …')}"
        if not any(call.can_prove for call in found):
            return "no call returned text"
        why = self._why.get(tool)
        return f"a question was dropped: {why}" if why else "the model wrote no question about its results"

    async def _rounds(self, wanted: int, work: Callable[[str], Awaitable[list[Question]]]) -> None:
        """Work round by round until so many questions were made, or none came for some rounds."""
        number = idle = 0
        while len(self.made) < wanted and idle < _FRUITLESS:
            number += 1
            # The key of a round gives its seed, which is the same when questions are generated again.
            found = (await work(f"{work.__name__}/{number}"))[: wanted - len(self.made)]
            if found:
                self.keep(found)
                self.made += found
                self.used.update(call.proposed.tool for question in found for call in question.proof)
            idle = 0 if found else idle + 1
            done = f"{counted(len(self.made), 'question')}, {counted(len(self.calls), 'call')}"
            self.tell(f"{done}, {self.dropped.total()} dropped")

    async def _answerable(self, key: str) -> list[Question]:
        cut = max(0, len(self.calls) - _MOST_SHOWN)
        earlier, latest = self.calls[max(0, cut - _MOST_EARLIER) : cut], self.calls[cut:]
        await self._make(await self.writer.propose_calls(earlier, latest, key))
        shown = self._least_used()
        if not shown:
            return []
        drafts = await self.writer.write_questions(shown, self.known.texts, key)
        self.known.note(draft.question for draft in drafts)
        checked = [(draft, self._checked(draft)) for draft in drafts]
        for draft, found in checked:
            if isinstance(found, str):
                self._why |= {call.proposed.tool: found for call in self.calls if call.number in draft.calls}
        return await self._proven(self._kept([found for _, found in checked]))

    async def _unanswerable(self, key: str) -> list[Question]:
        if not self.calls:  # it must be known what the tools are about
            await self._make(await self.writer.propose_calls((), (), key))
        drafts = await self.writer.write_unanswerable(self._least_used(), self.known.texts, key)
        self.known.note(draft.question for draft in drafts)
        return await self._proven(self._kept([await self._sought(draft) for draft in drafts]))

    async def _routing(self, key: str) -> list[Question]:
        # The sort is stable, so that what a skill or tool needs and its near-miss follow each other.
        wanted = sorted(product(self.targets, (False, True)), key=self._routed.__getitem__)[:AT_ONCE]
        drafts = await self.writer.write_routing(wanted, self.known.texts, key)
        self.known.note(draft.question for draft in drafts)
        found: list[Question | str] = []
        for draft in drafts:
            pair = (draft.target, draft.near_miss)
            if pair not in wanted:
                found.append(_ANOTHER)
                continue
            expected = {f"{'not_' * draft.near_miss}{self.targets[draft.target]}": [draft.target]}
            expect = {**expected, "conditions": [*self.conditions]} if self.conditions else expected
            found.append(self._new(Question("", draft.question, "", (), expect=expect), draft.question))
            if not isinstance(found[-1], str):
                wanted.remove(pair)
                self._routed[pair] += 1
        return self._kept(found)

    def _least_used(self) -> list[Call]:
        """Return the calls to write about next: those that fewest questions are about, later ones first."""
        proving = [call for call in self.calls if call.can_prove]
        chosen = sorted(proving, key=lambda call: (self._uses[call.number], -call.number))[:_MOST_SHOWN]
        return sorted(chosen, key=lambda call: call.number)

    def _checked(self, draft: DraftQuestion) -> Question | str:
        """Return a question if results state its golden answer and it is new, else why it is dropped."""
        by_number = {call.number: call for call in self.calls if call.can_prove}
        # A model may name a call twice, or one that was never made.
        proof = tuple(by_number[number] for number in dict.fromkeys(draft.calls) if number in by_number)
        # What a model writes about and does not get accepted is not written about over and over.
        self._uses.update(call.number for call in proof)
        if not proof:
            return _NO_CALL
        if not states(proof, draft.evidence):
            return _NO_EVIDENCE
        if unsupported(draft.answer, draft.question, proof) is not None:
            return _UNSUPPORTED
        if names_today(draft.answer, proof, datetime.now(UTC).date()):
            return _TODAY
        return self._new(Question("", draft.question, draft.answer, proof, draft.evidence), draft.answer)

    async def _sought(self, draft: UnanswerableDraft) -> Question | str:
        """Return a question if no result has what it seeks, also not of the calls that would find it; else why not."""
        proof = tuple(await self._make(draft.calls))
        if not proof or not draft.sought:
            return _SEEKS_NOTHING
        if has_all(self.calls, draft.sought):
            return _FOUND
        return self._new(Question("", draft.question, NOT_KNOWN, proof, unanswerable=True), draft.question)

    def _new(self, question: Question, answer: str) -> Question | str:
        """Return a question with its id if it is new; `answer` is what it may share with another one."""
        if self.known.has_near(question.question, answer):
            return _NEAR
        self.known.add(question.question, answer)
        identified = attrs.evolve(question, id=_id(question.question, self.taken))
        self.taken.add(identified.id)
        return identified

    def _kept(self, found: Iterable[Question | str]) -> list[Question]:
        """Return the questions, and count why others were dropped."""
        decided = [*found]
        self.dropped.update(each for each in decided if isinstance(each, str))
        return [each for each in decided if not isinstance(each, str)]

    async def _make(self, proposed: Iterable[ProposedCall]) -> list[Call]:
        """Return calls, made with fresh servers unless they were made before; a lost server ends them early.

        Raises ServerLostError if that happens again and again.
        """
        known = {call.proposed.key: call for call in self.calls}
        wanted = list({call.key: call for call in proposed}.values())
        try:
            if any(call.key not in known for call in wanted):
                async with self.toolbox.fresh_servers() as sessions:
                    for call in wanted:
                        if call.key not in known:
                            known[call.key] = await made(sessions, call, len(self.calls) + 1)
                            self.calls.append(known[call.key])
                self._lost = 0
        except ServerLostError as error:
            self._lost += 1
            self.tell(f"a server was lost: {error}")
            if self._lost >= _FRUITLESS:
                raise
        finally:
            self._latest = time.monotonic()
        return [known[call.key] for call in wanted if call.key in known]

    async def _proven(self, found: Sequence[Question]) -> list[Question]:
        """Make the calls of questions again, with fresh servers, and return those whose results are the same.

        Questions share the servers where all their tools only read.
        """
        if not found:
            return []
        await asyncio.sleep(self._latest + _APART - time.monotonic())
        reading = [question for question in found if self.toolbox.only_read(question.proof)]
        alone = [[question] for question in found if question not in reading]
        proven = [name for group in (reading, *alone) for name in await self._same(group)]
        return [question for question in found if question.id in proven]

    async def _same(self, group: Sequence[Question]) -> list[str]:
        """Return the ids of the questions whose calls give the same again."""
        if not group:
            return []
        calls = {call.number: call for question in group for call in question.proof}
        try:
            async with self.toolbox.fresh_servers() as sessions:
                others = await changed(sessions, calls.values())
        except ServerLostError:
            self.dropped[_LOST] += len(group)
            return []
        same = [question.id for question in group if others.isdisjoint(call.number for call in question.proof)]
        self.dropped.update([_CHANGED] * (len(group) - len(same)))
        self._why |= {call.proposed.tool: _CHANGED for number, call in calls.items() if number in others}
        return same


def _id(question: str, taken: Collection[str]) -> str:
    """Return an id: the first long words of a question, and a part of its digest that makes it unique."""
    words = [word for word in re.findall(r"[a-z0-9]+", question.lower()) if len(word) > 3][:4]
    digest = hashlib.sha256(question.encode("utf-8", "replace")).hexdigest()
    candidates = ("-".join([*words, digest[:length]]) for length in range(4, len(digest)))
    return next(each for each in candidates if each not in taken)


def _excerpt(text: str, evidence: str) -> str:
    """Return the part of a result that is kept, with the evidence in it."""
    if len(text) <= _LONGEST_KEPT:
        return text
    start = max(0, text.find(evidence.strip()) - _LONGEST_KEPT // 4)
    part = text[start : start + _LONGEST_KEPT]
    return f"{'…' if start else ''}{part}{'…' if start + _LONGEST_KEPT < len(text) else ''}"
