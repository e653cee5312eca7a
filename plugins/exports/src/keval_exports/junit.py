"""A run as a JUnit XML file: a suite for each arm, and a test case for each trial."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryFile
from typing import IO, Literal
from xml.sax.saxutils import escape as _escape

import attrs

from keval import Failure, Manifest, Run, ScoreLine, Trial
from keval.plugin import Exported
from keval_analysis import GateResult
from keval_exports.files import exported_file

_HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n'
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 does not allow, escaped or not: section 2.2."""
_BREAKS = {"\r": "&#13;"}
"""A parser turns a carriage return into a line feed, unless it is escaped: section 2.11."""
_IN_ATTRIBUTES = {**_BREAKS, "\n": "&#10;", "\t": "&#9;", '"': "&quot;"}
"""A parser turns these into spaces in attributes: section 3.3.3."""


@attrs.frozen
class Junit:
    """Writes junit.xml, which Jenkins, GitLab and other servers show as a test report.

    A failed trial, or one that a scorer failed on, is an error; one that nobody gave a value is skipped. A gate that
    failed is a failure.
    """

    def export(self, run: Run, to: Path) -> Exported:
        """Write the file. Raises RunError: the run is damaged, or the folder cannot be written."""
        path = to / "junit.xml"
        written = run.written_summary()
        gates = written.gates if written is not None else ()
        with ExitStack() as stack:
            file = stack.enter_context(exported_file(path))
            # The counts stand before the cases, so that the cases of each arm wait in a file of their own.
            suites = {
                (agent, condition): _Suite(f"{agent} {condition}", stack.enter_context(TemporaryFile()))
                for agent in run.manifest.agents
                for condition in run.manifest.conditions
            }
            for trial in run.trials():
                suites[trial.agent, trial.condition].add(_case(run.manifest, trial, run.scores_of(trial.id)))
            if gates:
                suites["", ""] = _Suite("gates", stack.enter_context(TemporaryFile()))
                for gate in gates:
                    suites["", ""].add(_gate(run.manifest, gate))
            _write(file, run.manifest, suites.values())
        left_out = [
            f"{suite.name} is left out: it has no trial" for suite in suites.values() if not suite.counts["tests"]
        ]
        return Exported((path,), tuple(left_out))


@attrs.frozen
class _Case:
    """A test case: its element, its time in seconds, and what it counts as in its suite, if it did not pass."""

    xml: str
    time: float = 0.0
    ended: Literal["errors", "failures", "skipped"] | None = None


@attrs.define
class _Suite:
    """The cases of a suite as they are written, and how many ended how."""

    name: str
    cases: IO[bytes]
    counts: Counter[str] = attrs.field(factory=Counter, init=False)
    time: float = attrs.field(default=0.0, init=False)

    def add(self, case: _Case) -> None:
        self.cases.write(case.xml.encode())
        self.counts.update(filter(None, ("tests", case.ended)))
        self.time += case.time


def _write(file: IO[bytes], manifest: Manifest, suites: Iterable[_Suite]) -> None:
    told = [suite for suite in suites if suite.counts["tests"]]
    total = {name: sum(suite.counts[name] for suite in told) for name in ("tests", "failures", "errors")}
    time = _seconds(sum(suite.time for suite in told))
    file.write((_HEAD + open_tag("testsuites", name=manifest.evaluation, time=time, **total)).encode())
    for suite in told:
        counts = {name: suite.counts[name] for name in ("tests", "failures", "errors", "skipped")}
        named = {"name": f"{manifest.evaluation} {suite.name}", "time": _seconds(suite.time)}
        file.write(open_tag("testsuite", **named, **counts, timestamp=manifest.started).encode())
        file.write(element("properties", "".join(_properties(manifest))).encode())
        suite.cases.seek(0)
        copyfileobj(suite.cases, file)
        file.write(b"</testsuite>\n")
    file.write(b"</testsuites>\n")


def _properties(manifest: Manifest) -> Iterator[str]:
    replay = manifest.replay
    told = {
        "run": manifest.run,
        "baseline": manifest.baseline,
        "keval": manifest.versions.get("keval", "unknown"),
        **({"simulated": ", ".join(manifest.simulated)} if manifest.simulated else {}),
        **({"replayed_from": replay.run, "recorded": replay.recorded} if replay else {}),
    }
    yield from (element("property", name=name, value=value) for name, value in told.items())


def _case(manifest: Manifest, trial: Trial, scores: list[ScoreLine]) -> _Case:
    duration = trial.transcript.duration if trial.transcript else None
    failed = [line for line in scores if line.failure is not None]
    valued = any(line.score.value is not None for line in scores)
    passed = trial.failure is None and not failed
    parts: list[str] = []
    if trial.failure is not None:
        parts.append(_error(trial.failure))
    elif failed:
        named = "\n".join(f"{_scorer(line)}: {line.failure.message}" for line in failed if line.failure)
        kinds = {f"{line.failure.stage}: {line.failure.kind}": None for line in failed if line.failure}
        message = f"{len(failed)} scores failed" if len(failed) > 1 else "1 score failed"
        parts.append(element("error", named, escape=True, type=", ".join(kinds), message=message))
    elif not valued:
        reasons = "\n".join(f"{_scorer(line)}: {line.score.reason}" for line in scores)
        parts.append(element("skipped", reasons, escape=True, message="no scorer gave a value"))
    # Surefire's words for an attempt that was repeated: flaky if a later one passed.
    again = "rerunError" if trial.failure is not None else "flakyError"
    parts += [_error(attempt.failure, again) for attempt in trial.attempts]
    parts.append(element("system-out", "\n".join(_told(trial, scores)), escape=True))
    name, where = f"{trial.sample.id} [{trial.repetition}]", f"{manifest.evaluation}.{trial.agent}.{trial.condition}"
    time = None if duration is None else _seconds(duration)
    xml = element("testcase", "".join(parts), name=name, classname=where, time=time)
    return _Case(xml, duration or 0.0, "errors" if not passed else None if valued else "skipped")


def _error(failure: Failure, name: str = "error") -> str:
    kind, text = f"{failure.stage}: {failure.kind}", failure.traceback or failure.message
    if name == "error":
        return element(name, text, escape=True, type=kind, message=failure.message)
    return element(name, element("stackTrace", text, escape=True), type=kind, message=failure.message)


def _told(trial: Trial, scores: Iterable[ScoreLine]) -> Iterator[str]:
    yield f"trial: {trial.id}"
    yield f"question: {trial.question}"
    yield f"answer: {trial.output}"
    for line in scores:
        score = line.score
        value = "unscored" if score.value is None else f"{score.value:g}{' (neutral)' if score.neutral else ''}"
        yield f"{_scorer(line)}: {value}{f', {score.reason}' if score.reason else ''}"


def _scorer(line: ScoreLine) -> str:
    repetition = line.judgement.repetition if line.judgement else 1
    judge = f" by {line.judge}" if line.judge else ""
    return f"{line.metric}{judge}{f' (grading {repetition})' if repetition > 1 else ''}"


def _gate(manifest: Manifest, gate: GateResult) -> _Case:
    told = f"{gate.gate}: {gate.reason}" if gate.reason else gate.gate
    found = "unknown" if gate.value is None else f"{gate.value:g}"
    parts = {
        "held": "",
        "failed": element("failure", told, escape=True, type="gate", message=f"{gate.decided_on} is {found}"),
        "undecided": element("skipped", told, escape=True, message="undecided"),
    }[gate.verdict]
    xml = element("testcase", parts, name=gate.gate, classname=f"{manifest.evaluation}.gates")
    return _Case(xml, 0.0, None if gate.verdict == "held" else "failures" if gate.verdict == "failed" else "skipped")


def _seconds(value: float) -> str:
    return f"{value:.3f}"


def element(name: str, content: str = "", /, *, escape: bool = False, **attributes: object) -> str:
    """Return an element with a line break after it. `escape` says that the content is text and not XML.

    Attributes that are `None` are left out. Characters that XML does not allow become U+FFFD.
    """
    inner = _escape(_allowed(content), _BREAKS) if escape else content
    return f"{_tag(name, attributes)}{inner}</{name}>\n" if inner else f"{_tag(name, attributes)[:-1]}/>\n"


def open_tag(name: str, /, **attributes: object) -> str:
    """Return a start tag with a line break after it."""
    return f"{_tag(name, attributes)}\n"


def _tag(name: str, attributes: dict[str, object]) -> str:
    told = {
        key: _escape(_allowed(str(value)), _IN_ATTRIBUTES) for key, value in attributes.items() if value is not None
    }
    return "".join(["<", name, *(f' {key}="{value}"' for key, value in told.items()), ">"])


def _allowed(text: str) -> str:
    return _FORBIDDEN.sub("\ufffd", text)
