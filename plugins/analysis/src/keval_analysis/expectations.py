"""Expectations of samples (`expect:` in a dataset's record), checked against each trial as it is read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import TypeAlias

import attrs

from keval.records.formats import time_span
from keval.records.manifest import ConditionEntry, Manifest
from keval.records.transcript import Transcript
from keval.records.trial import Expectation, Trial
from keval_analysis.choices import UnknownError, choices, is_called, is_read
from keval_analysis.findings.summary import GateResult, GateVerdict, UnmetExpectation
from keval_analysis.stats.contrasts import revisions

_Check: TypeAlias = Callable[[Trial], str | None]
"""Returns a piece of an answer that does not meet an expectation; `None` for one that does."""

_MOST_NAMED = 1_000
"""Unmet expectations that are kept; the others are counted."""
_EXCERPT = 120
"""Characters of an answer that are told."""
_SECONDS = 1.0
"""How long a pattern may be looked for in one answer."""
_NOTHING_KNOWN = Transcript(unlisted_calls=None)


@attrs.define
class ExpectationCheck:
    """Counts the expectations that answers met, and keeps those that they did not; failed trials are counted apart.

    An expectation is one text, pattern, skill, tool or limit, held against one trial. `example` tells of the first of
    the `unknown` ones, which can neither be confirmed nor refuted.
    """

    conditions: Mapping[str, ConditionEntry]
    met: int = 0
    missed: int = 0
    unknown: int = 0
    failed: int = 0
    example: str = ""
    unmet: list[UnmetExpectation] = attrs.field(factory=list)

    @classmethod
    def of(cls, manifest: Manifest) -> ExpectationCheck:
        """Return the check of a run, of all its conditions but what they were at the commit of `--against`."""
        before = {*revisions(manifest).values()}
        return cls({label: each for label, each in manifest.conditions.items() if label not in before})

    def add(self, trial: Trial) -> None:
        """Check a trial."""
        if trial.condition not in self.conditions:
            return
        expected = [part for part in trial.sample.expect if not part.conditions or trial.condition in part.conditions]
        if expected and trial.failure is not None:
            self.failed += 1
            return
        for told, check in (found for part in expected for found in self._checks(part)):
            try:
                answered = check(trial)
            except UnknownError as error:
                self.unknown += 1
                self.example = self.example or f"{trial.id} {told}: {error}"
                continue
            if answered is None:
                self.met += 1
                continue
            self.missed += 1
            if len(self.unmet) < _MOST_NAMED:
                where = (trial.sample.id, trial.agent, trial.condition, trial.repetition)
                self.unmet.append(UnmetExpectation(*where, told, answered))

    def watch(self, trials: Iterable[Trial]) -> Iterator[Trial]:
        """Check trials as they are read, and yield each."""
        for trial in trials:
            self.add(trial)
            yield trial

    def results(self) -> list[GateResult]:
        """Return the gate over all expectations; none if no sample that was asked expects anything."""
        checked = self.met + self.missed + self.unknown
        if not (checked or self.failed):
            return []
        reason = f"{self.met} of {checked} expectations met"
        reason += f"; {self.unknown} unknown, such as {self.example}" if self.unknown else ""
        reason += f"; {self.failed} failed trials are left out" if self.failed else ""
        verdict: GateVerdict = "failed" if self.missed else "undecided" if self.unknown or not checked else "held"
        share = self.met / checked if checked else None
        return [GateResult("expect", verdict, share, None, None, "every answer", reason, kind="expect")]

    def _checks(self, part: Expectation) -> Iterator[tuple[str, _Check]]:
        """Yield each single expectation in words, and what checks it."""
        yield from ((f"contains {text!r}", partial(_contains, text)) for text in part.contains)
        yield from ((f"does not contain {text!r}", partial(_lacks, text)) for text in part.not_contains)
        yield from ((f"matches {pattern!r}", partial(_matches, pattern)) for pattern in part.regex)
        for wanted, does, tools in (
            (True, "calls", (*part.tool_called, *part.calls)),
            (False, "does not call", part.not_calls),
        ):
            yield from ((f"{does} {tool}", partial(self._calls, tool, wanted)) for tool in tools)
        for wanted, does, texts in ((True, "reads", part.reads), (False, "does not read", part.not_reads)):
            yield from ((f"{does} {text}", partial(_reads, text, wanted)) for text in texts)
        if part.max_seconds is not None:
            yield f"takes at most {part.max_seconds:g} s", partial(_in_time, part.max_seconds)

    def _calls(self, tool: str, wanted: bool, trial: Trial) -> str | None:
        transcript = trial.transcript or _NOTHING_KNOWN
        if is_called(tool, transcript, self.conditions.get(trial.condition)) is wanted:
            return None
        called = dict.fromkeys(call.name for call in transcript.tool_calls)
        return _excerpt(f"called {', '.join(called) or 'no tool'}")


def _contains(text: str, trial: Trial) -> str | None:
    return None if text in trial.output else _excerpt(trial.output)


def _lacks(text: str, trial: Trial) -> str | None:
    place = trial.output.find(text)
    if place < 0:
        return None
    around = (_EXCERPT - len(text)) // 2
    return _excerpt(trial.output, max(0, place - max(0, around)))


def _matches(pattern: str, trial: Trial) -> str | None:
    import regex  # needed only where a pattern is expected; unlike `re`, it can be interrupted

    try:
        found = regex.search(pattern, trial.output, timeout=_SECONDS)
    except (TimeoutError, MemoryError):
        raise UnknownError(f"the pattern was not done with the answer in {_SECONDS:g} s") from None
    except regex.error as error:  # of a file that was changed, as the dataset's patterns were checked
        raise UnknownError(f"the pattern is no regular expression: {error}") from None
    return None if found else _excerpt(trial.output)


def _reads(text: str, wanted: bool, trial: Trial) -> str | None:
    transcript = trial.transcript or _NOTHING_KNOWN
    if is_read(text, transcript) is wanted:
        return None
    return _excerpt(f"read {', '.join(choices('reads', transcript)) or 'no skill'}")


def _in_time(most: float, trial: Trial) -> str | None:
    seconds = trial.transcript.duration if trial.transcript else None
    if seconds is None:
        raise UnknownError("it is not known how long it took")
    return None if seconds <= most else f"took {time_span(seconds)}"


def _excerpt(text: str, start: int = 0) -> str:
    """Return a piece of a text on one line."""
    # More than is shown, as white space is collapsed, but not all of an answer that may be long.
    piece = " ".join(text[start : start + 4 * _EXCERPT].split())
    shown = piece[:_EXCERPT]
    more = len(piece) > _EXCERPT or len(text) > start + 4 * _EXCERPT
    return f"{'…' if start else ''}{shown}{'…' if more else ''}"
