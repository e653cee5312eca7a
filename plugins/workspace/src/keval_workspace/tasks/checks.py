"""Checks: the entries of `verify:` read, run at the end of a trial, and scored."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import attrs

from keval.config.source import KeyPath
from keval.config.structure import structure
from keval.errors import FieldError, PluginError, TrialError, suggestion
from keval.execute.attempts import run_attempt
from keval.records.end_state import ALL_CHECKS, CHECK_PREFIX, CheckResult
from keval.records.scores import Score
from keval.records.trial import Trial
from keval.seams import registry
from keval.seams.workspaces import Check, EndOfTrial, Finding

_GRACE = 10.0
"""Seconds that a check may take beyond its own time limit, in which it ends what it has started."""


@attrs.frozen
class NamedCheck:
    """One check of an evaluation or a sample: its name, its kind (a plugin's name), and the plugin."""

    name: str
    kind: str
    check: Check

    @property
    def needs_workspace(self) -> bool:
        """Whether it looks into a folder."""
        return bool(getattr(type(self.check), "needs_workspace", True))


def check_names(entries: Iterable[Any]) -> list[str]:
    """Return the names in entries of `verify:`, each once."""
    names = (entry.get("name") for entry in entries if isinstance(entry, Mapping))
    return [*dict.fromkeys(name for name in names if isinstance(name, str))]


def read_checks(entries: Sequence[Any], path: KeyPath, base: Path) -> tuple[tuple[NamedCheck, ...], list[FieldError]]:
    """Construct the checks of a list `verify:` at `path`, and return what is wrong; relative paths start at `base`."""
    found: dict[str, NamedCheck] = {}
    errors: list[FieldError] = []
    for index, entry in enumerate(entries):
        at = (*path, index)
        try:
            check = _read(entry, at, base)
        except _WrongError as wrong:
            errors += wrong.errors
            continue
        if check.name in found:
            errors.append(FieldError((*at, "name"), f"another check is named {check.name!r}; rename one"))
        found[check.name] = check
    return tuple(found.values()), errors


class _WrongError(Exception):
    def __init__(self, *errors: FieldError) -> None:
        super().__init__(*errors)
        self.errors = errors


def _read(entry: Any, path: KeyPath, base: Path) -> NamedCheck:
    kinds = [component.name for component in registry.components("keval.checks")]
    example = "such as `{name: tests pass, command: make test}`"
    if not isinstance(entry, Mapping):
        raise _WrongError(FieldError(path, f"expected a check, {example}, got {entry!r:.100}"))
    name = entry.get("name")
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        told = f"the check has no name; add `name:`, by which its score is known, {example}"
        raise _WrongError(FieldError(path, told))
    if name == ALL_CHECKS:
        raise _WrongError(
            FieldError((*path, "name"), f"{CHECK_PREFIX}{ALL_CHECKS} is the score of all checks; rename this one")
        )
    given = [key for key in entry if key != "name"]
    for key in given:
        if key not in kinds:
            told = f"no check of the kind {key!r}{suggestion(str(key), kinds, 'kinds')}"
            raise _WrongError(FieldError((*path, key), told, at_key=True))
    if len(given) != 1:
        told = f"the check {name!r} is of {len(given)} kinds; give it one of {', '.join(kinds)}"
        raise _WrongError(FieldError(path, told))
    kind, options = given[0], entry[given[0]]
    try:
        target = registry.load(registry.find("keval.checks", kind))
    except PluginError as error:
        raise _WrongError(FieldError((*path, kind), str(error))) from error
    short = getattr(target, "short_option", None)
    if not isinstance(options, Mapping) and short is not None:
        options = {short: options}
    check, errors = structure(target, options, (*path, kind), base)
    if check is None:
        raise _WrongError(*errors)
    return NamedCheck(name, kind, check)


def unread(entries: Sequence[Any], errors: Iterable[FieldError]) -> tuple[CheckResult, ...]:
    """Return the results of the entries of `verify:` that these errors are about: they neither pass nor fail."""
    told: dict[int, str] = {}
    for error in errors:
        told.setdefault(int(error.path[1]), error.message)
    return tuple(
        CheckResult(name, next((key for key in entries[index] if key != "name"), ""), None, f"could not run: {message}")
        for index, message in told.items()
        for name in check_names([entries[index]])
    )


async def run_checks(checks: Iterable[NamedCheck], end: EndOfTrial) -> tuple[CheckResult, ...]:
    """Run checks one after the other. One that cannot run has a result, too, which neither passes nor fails."""
    return tuple([await _run(check, end) for check in checks])


async def _run(named: NamedCheck, end: EndOfTrial) -> CheckResult:
    seconds = named.check.timeout_seconds + _GRACE
    late = TrialError(f"it did not end within {seconds:g} s", kind="timeout")
    began = time.perf_counter()
    tried = await run_attempt(lambda: named.check.check(end), seconds=seconds, late=late)
    took = time.perf_counter() - began
    if tried.failure is not None:
        told = f"could not run: {tried.failure.message}"
        return CheckResult(named.name, named.kind, None, told, tried.failure.traceback, took)
    finding = tried.value
    if not isinstance(finding, Finding):
        told = f"could not run: a check of the kind {named.kind!r} returned {finding!r:.100} in place of a Finding"
        return CheckResult(named.name, named.kind, None, told, None, took)
    return CheckResult(named.name, named.kind, finding.passed, finding.reason, finding.output, took)


@attrs.frozen
class CheckScore:
    """Tells what one check of the given name found, or all of them together: 1 if it passed, 0 if not."""

    category: ClassVar[str] = "checks"

    check: str = ALL_CHECKS

    def score(self, trial: Trial) -> Score:
        """Return 1 or 0; unscored if the check could not run, neutral if the sample has no check of this name."""
        end = trial.transcript.end_state if trial.transcript else None
        results = [each for each in (end.checks if end else ()) if self.check in (ALL_CHECKS, each.name)]
        if not results:
            what = "no checks" if self.check == ALL_CHECKS else "no such check"
            return Score(1.0, f"the sample has {what}", neutral=True)
        failed = [each for each in results if each.passed is False]
        if failed:
            return Score(0.0, "; ".join(_told(each, self.check) for each in failed))
        if unknown := [each for each in results if each.passed is None]:
            return Score(None, "; ".join(_told(each, self.check) for each in unknown))
        return Score(1.0, results[0].reason if self.check != ALL_CHECKS else f"all {len(results)} checks passed")


def _told(result: CheckResult, of: str) -> str:
    return f"{result.name}: {result.reason}" if of == ALL_CHECKS else result.reason
