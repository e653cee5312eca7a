"""Recorded answers of a server for agents that are live (`results: {recorded: RUN}`): found by call, not by order.

A call gets what a call of the same tool with equal arguments got: in the same trial, in its order; else in another
trial of the same sample; else, of a tool that only reads (`readOnlyHint`), in a trial of any sample.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from difflib import SequenceMatcher
from functools import cached_property, lru_cache
from typing import Any, Literal, TypeAlias

import attrs
import orjson

from keval.errors import PreflightError, RunError
from keval.records.cassettes import Deliver, ReplayMissError, ServerTraffic, ServerTrafficKind, TrafficError
from keval.records.interventions import RecordedResults
from keval.records.manifest import AnswersEntry
from keval.records.servers import McpServer
from keval.records.trial import TrialKey
from keval.redaction import Redactor
from keval.seams.contexts import ServerUse, TrialInfo
from keval.store.run import Run
from keval_replay.matching import settled
from keval_replay.recorder import check_is_seen
from keval_replay.recording import Recording
from keval_replay.request_comparison import first_difference_of_call

_Ask: TypeAlias = tuple[str, str, bytes]
"""What is asked of which server: the method, and a digest of the parameters."""

_UNUSABLE = ("lost", "call_lost", "abandoned")
"""Errors that say nothing of what was asked; the recorded trial was run again after them, or ended by them."""
_CACHED = 64
"""Trials whose traffic is kept in memory."""
_NEAR = 50
"""Recorded calls that are compared with one that the recording does not have."""
_REFUSED = -32603
"""The code of an internal error (JSON-RPC 2.0, section 5.1)."""


@attrs.frozen
class _Place:
    """Where an exchange is: which of its trial's traffic, which attempt it is of, and what it asked for."""

    of: TrialKey
    number: int
    attempt: int
    tool: str


@attrs.frozen(eq=False, slots=False)
class RecordedResultsReader:
    """Answers a context's servers from a recording; see `keval.seams.traffic.RecordedServers`.

    Calls are compared without their secrets. It is the entry point `results` in the group `keval.recorders`.
    """

    recording: Recording
    misses: Literal["fail", "live", "error"]
    redact: Redactor

    @classmethod
    def open(cls, results: RecordedResults, redact: Redactor) -> RecordedResultsReader:
        """Open the recording that an intervention names. Raises PreflightError: there is none."""
        if not (results.recorded / "manifest.json").is_file():
            told = f"no run at {results.recorded}; give the directory of a run that was recorded (--record)"
            raise PreflightError(told)
        try:
            return cls(Recording.open(Run(results.recorded)), results.misses, redact)
        except RunError as error:
            raise PreflightError(str(error)) from error

    @property
    def entry(self) -> AnswersEntry:
        """What a manifest says of it."""
        manifest = self.recording.manifest
        return AnswersEntry(manifest.run, manifest.recording.since if manifest.recording else None, self.misses)

    def listing(self, use: ServerUse | McpServer, condition: str | None) -> ServerUse | McpServer:
        """Return the use of a server with what plays it before the first trial, which is only what it lists."""
        return self._played(check_is_seen(use), condition, None, lambda: None)

    def served(self, use: ServerUse, trial: TrialInfo, expire: Callable[[], object]) -> ServerUse:
        """Return the use of a server with what plays it to one attempt; `expire` ends the attempt."""
        return self._played(use, trial.condition, trial, expire)

    def _played(
        self, use: ServerUse, condition: str | None, trial: TrialInfo | None, expire: Callable[[], object]
    ) -> ServerUse:
        cassette = _RecordedResultsServer(self, use.name, condition, trial, expire)
        return attrs.evolve(use, cassette=cassette, asks_live=self.misses == "live")

    def listed(self, server: str, condition: str | None) -> Mapping[str, Any]:
        """Return what a server listed: under this condition, or else under the first that had it.

        Raises:
            PreflightError: the recording has nothing of the server.
            RunError: it is damaged.
        """
        keys = [key for key in self.recording.frames.keys if key.role == "server" and key.server == server]
        if not keys:
            known = sorted({key.server for key in self.recording.frames.keys if key.role == "server" and key.server})
            raise PreflightError(
                f"the recording of {self.recording.run.id} has no traffic of the server {server!r}, only of"
                f" {', '.join(known) or 'no server'}; give the context a recorded name, or derive it from one (`from:`)"
            )
        chosen = next((key for key in keys if key.condition == condition), keys[0])
        return self.recording.listed(chosen.condition or "", server)

    @cached_property
    def places(self) -> Mapping[_Ask, Sequence[_Place]]:
        """Where each thing that can be answered is, by what was asked. Raises RunError."""
        found: dict[_Ask, list[_Place]] = {}
        played = (key for key in self.recording.run.known_trials if key.id in self.recording.trials)
        for of in sorted(played, key=lambda key: key.id):
            for number, each in enumerate(settled(self.recording.of_trial(of.id))):
                if isinstance(each, ServerTraffic) and _is_usable(each):
                    place = _Place(of, number, each.attempt, str(each.params.get("name", "")))
                    found.setdefault(_ask(each.server, each.method, each.params), []).append(place)
        return found

    @cached_property
    def by_tool(self) -> Mapping[tuple[str, str, str], Sequence[_Place]]:
        """The same places, by server, method and tool."""
        found: dict[tuple[str, str, str], list[_Place]] = {}
        for (server, method, _), places in self.places.items():
            for place in places:
                found.setdefault((server, method, place.tool), []).append(place)
        return found

    @cached_property
    def exchange(self) -> Callable[[_Place], ServerTraffic]:
        """What returns the exchange at a place; the last trials stay in memory."""
        read: Callable[[str], Sequence[Any]] = lru_cache(_CACHED)(lambda of: settled(self.recording.of_trial(of)))
        return lambda place: read(place.of.id)[place.number]


@attrs.frozen(eq=False)
class _RecordedResultsServer:
    """Plays one server to one attempt; see `keval.records.cassettes.ServerCassette`."""

    recorded_results: RecordedResultsReader
    name: str
    condition: str | None
    trial: TrialInfo | None
    expire: Callable[[], object]
    _asked: Counter[_Ask] = attrs.field(factory=Counter, init=False)

    def listed(self) -> Mapping[str, Any]:
        return self.recorded_results.listed(self.name, self.condition)

    def opened(self) -> ServerTraffic | None:
        return None

    def hear(self, deliver: Deliver) -> None:
        """Tell nobody anything: what a server said by itself belongs to the course of its own trial."""

    async def play(
        self, kind: ServerTrafficKind, method: str, params: Mapping[str, Any], deliver: Deliver
    ) -> ServerTraffic:
        given = self.recorded_results.redact.data(dict(params))
        asked = ServerTraffic(self.name, kind, method, given)
        if kind not in ("call", "request"):
            return asked
        key = _ask(self.name, method, given)
        self._asked[key] += 1
        only_reads = kind == "request" or self._only_reads(given)
        places = self._first(self.recorded_results.places.get(key, ()), only_reads=only_reads)
        if places:
            # Asked more often than recorded, the last answer holds on.
            return self.recorded_results.exchange(places[min(self._asked[key], len(places)) - 1])
        problem = self._miss(asked, "" if only_reads else " for this sample")
        if self.recorded_results.misses == "error":
            return _as_error(asked, problem)
        if self.recorded_results.misses == "fail":
            self.expire()
        raise ReplayMissError(problem)

    def _first(self, places: Sequence[_Place], *, only_reads: bool) -> Sequence[_Place]:
        """Return the places of the trial that is nearest to this one; of one sample's, if it does not only read."""
        ranked = [(rank, place) for place in places if (rank := self._rank(place.of)) < 3 or only_reads]
        if not ranked:
            return ()
        _, nearest = min(ranked, key=lambda pair: (pair[0], pair[1].of.id))
        near = [place for _, place in ranked if place.of == nearest.of]
        # The attempt that was answered is the last one.
        return sorted(near, key=lambda place: (-place.attempt, place.number))

    def _rank(self, of: TrialKey) -> int:
        trial = self.trial
        if trial is None or of.sample != trial.sample.id:
            return 3
        same = (of.agent, of.repetition) == (trial.agent, trial.repetition)
        return 2 if not same else int(of.condition != trial.condition)

    def _only_reads(self, params: Mapping[str, Any]) -> bool:
        tools = (tool for tool in self.listed().get("tools", ()) if tool.get("name") == params.get("name"))
        return any((tool.get("annotations") or {}).get("readOnlyHint") is True for tool in tools)

    def _miss(self, asked: ServerTraffic, whose: str) -> str:
        """Say that there is no answer, and how the nearest recorded call differs."""
        tool = str(asked.params.get("name", ""))
        what = f"call of `{tool}`" if asked.kind == "call" else f"request {asked.method}"
        run = self.recorded_results.recording.run.id
        places = self.recorded_results.by_tool.get((self.name, asked.method, tool), ())
        if not places:
            return f"the recording of {run} has no {what} at the server {self.name!r}"
        near = sorted(places, key=lambda place: (self._rank(place.of), place.of.id))[:_NEAR]
        recorded = [self.recorded_results.exchange(place) for place in near]
        now = _arguments(asked)
        written = _written(now)

        def likeness(each: ServerTraffic) -> float:
            # An upper bound, in linear time: it only chooses which call a message shows.
            return SequenceMatcher(None, _written(_arguments(each)), written, autojunk=False).quick_ratio()

        nearest = max(recorded, key=likeness)
        told = first_difference_of_call(tool or asked.method, _arguments(nearest), now)
        if not told:  # it is of another sample, and may have changed something there
            told = f"only trials of other samples have this call, and `{tool}` is not read-only (readOnlyHint)"
        return f"the recording of {run} has no such {what} at the server {self.name!r}{whose}: {told}"


def _is_usable(each: ServerTraffic) -> bool:
    if each.kind not in ("call", "request") or each.ended is None:
        return False
    if each.error is not None:
        return each.error.kind not in _UNUSABLE
    # A server that asks for more input first has not answered yet.
    return (each.result or {}).get("resultType") != "input_required"


def _ask(server: str, method: str, params: Mapping[str, Any]) -> _Ask:
    # What a client sends along when it repeats a request with the input that the server asked for.
    plain = {name: value for name, value in params.items() if name not in ("inputResponses", "requestState")}
    if method == "tools/call":
        plain = {"name": plain.get("name"), "arguments": plain.get("arguments") or {}}
    # A digest, as the index has every call of the recording, and parameters may be long.
    return server, method, hashlib.blake2b(_written(plain), digest_size=16).digest()


def _written(value: Any) -> bytes:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def _arguments(each: ServerTraffic) -> Mapping[str, Any]:
    given = each.params.get("arguments") or {} if each.kind == "call" else each.params
    return given if isinstance(given, Mapping) else {}


def _as_error(asked: ServerTraffic, problem: str) -> ServerTraffic:
    """Return the answer that tells an agent that there is none."""
    if asked.kind == "call":
        told = f"there is no recorded answer: {problem}"
        return attrs.evolve(asked, result={"content": [{"type": "text", "text": told}], "isError": True})
    return attrs.evolve(asked, error=TrafficError("refused", problem, code=_REFUSED))
