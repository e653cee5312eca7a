"""The tasks of a plan: which workspace each trial has, and the checks that look at its end and are scored."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, ClassVar

import attrs

from keval.config.source import KeyPath
from keval.config.structure import structure
from keval.errors import FieldError, PluginError, PreflightError, TrialError, suggestion
from keval.execute.attempts import run_attempt
from keval.records.end_state import ALL_CHECKS, CHECK_PREFIX, CheckResult, Conventions, EndState
from keval.records.manifest import TextEntry
from keval.records.scores import Score
from keval.records.transcript import Blob, Transcript
from keval.records.trial import Sample, Trial, TrialKey
from keval.seams import registry
from keval.seams.contexts import Context, TrialInfo, Workspace
from keval.seams.workspaces import Check, EndOfTrial, Finding, TextContext, WorksInFolder, WorkspaceProvider


def conventions_of(agent: object) -> Conventions | None:
    """Return what an agent finds in its folder by itself; `None` if it works in none."""
    return agent.conventions() if isinstance(agent, WorksInFolder) else None


@attrs.frozen(eq=False)
class Tasks:
    """The workspaces of conditions, and the checks of the evaluation. Samples have theirs over these.

    `folders` has each condition's provider, and `asked` the conditions that ask for it; any other one is an empty
    folder, for agents that work in one, where a context gives a text as a file. `base` is the folder of the dataset.
    `described` has the contexts of texts, by condition and label, and what is told of each beside the texts themselves,
    which may come from a server that is not asked yet.
    """

    folders: Mapping[str, WorkspaceProvider]
    asked: frozenset[str]
    texts: frozenset[str]
    checks: tuple[NamedCheck, ...]
    base: Path
    places: Mapping[str, str]
    described: Mapping[str, Mapping[str, tuple[TextContext, TextEntry]]]

    def checks_of(self, sample: Sample) -> tuple[tuple[NamedCheck, ...], tuple[CheckResult, ...]]:
        """Return the checks of a sample: its own, and those of the evaluation with other names.

        Beside them stand the results of its own that cannot be read, such as where a file of theirs is missing on
        another machine.
        """
        own, errors = read_checks(sample.verify, ("verify",), self.base, variables=False)
        names = {*check_names(sample.verify)}
        return (*(check for check in self.checks if check.name not in names), *own), unread(sample.verify, errors)

    def asked_for(self, condition: str) -> WorkspaceProvider | None:
        """Return what makes the workspace of a condition; `None` if only some agents have one there."""
        return self.folders[condition] if condition in self.asked else None

    def provider(self, condition: str, sample: Sample, agent: Conventions | None) -> WorkspaceProvider | None:
        """Return what makes the workspace of a trial; `None` if it has none. Raises TrialError."""
        wanted = condition in self.asked or sample.workspace is not None
        if not wanted and not (condition in self.texts and agent is not None):
            return None
        folder = self.folders[condition]
        if sample.workspace is None:
            return folder
        own, errors = joined(folder, sample.workspace, self.base)
        if own is None:
            told = "; ".join(error.message for error in errors)
            raise TrialError(f"the sample's workspace: {told}", stage="context", kind="bad_workspace")
        return own

    async def prepare(self, close_later: Callable[[object], None]) -> None:
        """Try the workspaces of conditions out, before the first trial; each is handed to `close_later` before that.

        Raises PreflightError with every problem.
        """

        problems: list[str] = []
        # Conditions may share a provider, which is prepared once.
        for condition in {id(self.folders[label]): label for label in sorted(self.asked)}.values():
            close_later(self.folders[condition])
            try:
                await self.folders[condition].prepare()
            except PreflightError as error:
                problems += [f"{self.places[condition]}: {told}" for told in error.problems]
        if problems:
            raise PreflightError(problems)

    async def enter(self, stack: AsyncExitStack, info: TrialInfo, agent: object) -> tuple[TrialInfo, Workspace | None]:
        """Make the workspace of an attempt, and return what contexts are told of it. Raises TrialError."""
        conventions = conventions_of(agent)
        provider = self.provider(info.condition, info.sample, conventions)
        if provider is None:
            return info, None
        workspace = await stack.enter_async_context(provider.open(info))
        return attrs.evolve(info, workspace=workspace.folder, conventions=conventions), workspace

    async def verified(
        self, key: TrialKey, sample: Sample, transcript: Transcript, context: Context, end: EndState | None
    ) -> EndState | None:
        """Return the end of a trial with what its checks find; `None` if it has neither a workspace nor checks."""
        checks, missing = self.checks_of(sample)
        if not checks and not missing:
            return end
        trial = Trial(key.id, sample, key.agent, key.condition, key.repetition, transcript)
        folder = context.workspace.folder if context.workspace is not None else None
        servers = {server.name: server.source for server in context.servers if server.source is not None}
        sandbox = context.workspace.sandbox if context.workspace is not None else None
        left = end or EndState()
        at = EndOfTrial(trial, folder, left.changes, left.changes_cut, sandbox, servers)
        return attrs.evolve(left, checks=(*await run_checks(checks, at), *missing))

    def describe(self, condition: str) -> Mapping[str, Any]:
        """Return what a manifest has of the workspace of a condition; nothing, if it asks for none."""
        return self.folders[condition].describe() if condition in self.asked else {}

    def describe_texts(self, condition: str, redact: Callable[[Any], Any]) -> dict[str, TextEntry]:
        """Return what a manifest has of the contexts of texts of a condition, by label, without secrets."""
        return {
            label: attrs.evolve(
                entry,
                sha256=text.digest,
                parts=tuple(redact([*text.parts()])),
                interventions=tuple(redact(change) for change in entry.interventions),
                texts={redact(name): blob.sha256 for name, blob in _blobs(text, redact)},
            )
            for label, (text, entry) in self.described.get(condition, {}).items()
        }

    def text_blobs(self, redact: Callable[[Any], Any]) -> Iterator[Blob]:
        """Yield the texts of all conditions, without secrets."""
        texts = {id(text): text for of in self.described.values() for text, _ in of.values()}
        return (blob for text in texts.values() for _, blob in _blobs(text, redact))


def _blobs(text: TextContext, redact: Callable[[Any], Any]) -> Iterator[tuple[str, Blob]]:
    return ((name, Blob.of(redact(each).encode(), "text/plain")) for name, each in text.texts().items())


def joined(
    folder: WorkspaceProvider, own: Mapping[str, Any], base: Path
) -> tuple[WorkspaceProvider | None, list[FieldError]]:
    """Return a provider with a sample's own options over those of its condition; mappings are joined."""
    read, errors = structure(type(folder), dict(own), ("workspace",), base, variables=False)
    if read is None:
        return None, errors
    # Only what the sample writes: the defaults of `read` must not go over the condition's options.
    changes = {key: getattr(read, key) for key in own}
    for key, value in changes.items():
        if isinstance(value, Mapping) and isinstance(before := getattr(folder, key), Mapping):
            changes[key] = {**before, **value}
    return attrs.evolve(folder, **changes), []  # type: ignore[misc]


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


def read_checks(
    entries: Sequence[Any], path: KeyPath, base: Path, *, variables: bool = True
) -> tuple[tuple[NamedCheck, ...], list[FieldError]]:
    """Construct the checks of a list `verify:` at `path`, and return what is wrong; relative paths start at `base`.

    `variables` of the environment are filled in; not for a dataset, which may be a stranger's.
    """
    found: dict[str, NamedCheck] = {}
    errors: list[FieldError] = []
    for index, entry in enumerate(entries):
        at = (*path, index)
        check = _read(entry, at, base, variables=variables)
        if isinstance(check, list):
            errors += check
            continue
        if check.name in found:
            errors.append(FieldError((*at, "name"), f"another check is named {check.name!r}; rename one"))
        found[check.name] = check
    return tuple(found.values()), errors


def _read(entry: Any, path: KeyPath, base: Path, *, variables: bool) -> NamedCheck | list[FieldError]:
    kinds = [component.name for component in registry.components("keval.checks")]
    example = "such as `{name: tests pass, command: make test}`"
    if not isinstance(entry, Mapping):
        return [FieldError(path, f"expected a check, {example}, got {entry!r:.100}")]
    name = entry.get("name")
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        told = f"the check has no name; add `name:`, by which its score is known, {example}"
        return [FieldError(path, told)]
    if name == ALL_CHECKS:
        return [FieldError((*path, "name"), f"{CHECK_PREFIX}{ALL_CHECKS} is the score of all checks; rename this one")]
    given = [key for key in entry if key != "name"]
    for key in given:
        if key not in kinds:
            told = f"no check of the kind {key!r}{suggestion(str(key), kinds, 'kinds')}"
            return [FieldError((*path, key), told, at_key=True)]
    if len(given) != 1:
        told = f"the check {name!r} is of {len(given)} kinds; give it one of {', '.join(kinds)}"
        return [FieldError(path, told)]
    kind, options = given[0], entry[given[0]]
    try:
        target = registry.load(registry.find("keval.checks", kind))
    except PluginError as error:
        return [FieldError((*path, kind), str(error))]
    short = getattr(target, "short_option", None)
    if not isinstance(options, Mapping) and short is not None:
        options = {short: options}
    check, errors = structure(target, options, (*path, kind), base, variables=variables)
    if check is None:
        return errors
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
        # One that failed decides, also beside one that could not run.
        if failed:
            return Score(0.0, "; ".join(_told(each, self.check) for each in failed))
        if unknown := [each for each in results if each.passed is None]:
            return Score(None, "; ".join(_told(each, self.check) for each in unknown))
        return Score(1.0, results[0].reason if self.check != ALL_CHECKS else f"all {len(results)} checks passed")


def _told(result: CheckResult, of: str) -> str:
    return f"{result.name}: {result.reason}" if of == ALL_CHECKS else result.reason
