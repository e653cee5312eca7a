"""`--against REF`: conditions also run as they were at another commit, beside what they are now."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import attrs

from keval.config.evaluation import Evaluation, PluginSpec
from keval.config.load import read_evaluation
from keval.config.source import Source
from keval.errors import ConfigError, Problem
from keval.records.manifest import Manifest
from keval.run.active_run import ActiveRun
from keval.seams.hooks import hookimpl
from keval_mcp.ablation import with_conditions
from keval_mcp.against.repository import GitError, Repository
from keval_mcp.against.sources import Place, files_in, is_started_in, moved, sources_of, touched

_NOT_IN_LABELS = re.compile(r"[^\w.+-]")
_SHOWN = 3
_OF_TASKS = ("workspace",)
"""Keys of a condition that are taken from today for both sides."""


@attrs.frozen
class Base:
    """The commit that conditions are held against, as `--against` writes it into the config of a run.

    `folder` is where it was checked out, and `setup` the command that was run there. `arms` maps conditions to what
    they were, and `changed` says what differs of them.
    """

    ref: str
    commit: str
    folder: str
    setup: str | None = None
    arms: Mapping[str, str] = attrs.field(factory=dict)
    changed: Mapping[str, tuple[str, ...]] = attrs.field(factory=dict)


@attrs.frozen
class Against:
    """The keys that `--against` adds to the config of a run, and `--changed-since`: what is not run, in sentences."""

    against: Base | None = None
    not_run: tuple[str, ...] = ()

    @hookimpl
    def keval_run_summarised(self, run: ActiveRun) -> Mapping[str, Any] | None:
        return {"not run": [*self.not_run]} if self.not_run else None


def not_run(part: Sequence[str]) -> Sequence[str]:
    """Return what a report says of what has not changed, and is not run."""
    return part


@contextmanager
def checked_out(config: Path, base: Base, flag: str = "--against") -> Iterator[Base]:
    """Yield the base with its commit checked out for a while, and set up. Raises ConfigError, which names the flag.

    A folder that it has already is made again, for a run that goes on.
    """
    known = Path(base.folder) if base.folder else None
    try:
        repository = Repository.of(config.resolve().parent)
        commit = base.commit or repository.commit(base.ref)
        with repository.checked_out(commit, known) as tree:
            if base.setup:
                _set_up(base.setup, tree / config.resolve().parent.relative_to(repository.top))
            yield attrs.evolve(base, folder=str(tree), commit=commit)
    except GitError as error:
        raise ConfigError([Problem(f"{flag} {base.ref}", str(error))]) from error


def checked_out_again(manifest: Manifest) -> AbstractContextManager[Base]:
    """Return a block with the base of a run that goes on, where it was. Raises ConfigError."""
    written = manifest.config["against"]
    base = Base(**{name: written.get(name) for name in ("ref", "commit", "folder", "setup")})
    return checked_out(Path(manifest.config_folder) / "eval.yaml", base)


def _set_up(command: str, folder: Path) -> None:
    """Run the user's command in the folder of the config. Raises ConfigError."""
    done = subprocess.run(  # noqa: S602 - a shell's command is what the user gives
        command, shell=True, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, check=False
    )
    if done.returncode:
        told = (done.stderr or done.stdout).decode("utf-8", "replace").strip()[-500:]
        raise ConfigError([Problem("--against-setup", f"{command!r} exits with {done.returncode}: {told}")])


def held_against(evaluation: Evaluation, config: Path, base: Base) -> Evaluation:
    """Return an evaluation that also has each condition as it was at the base, if that differs.

    What is added stands in the config as if it had been written there. Problems of the evaluation are told first.
    """
    return evaluation if evaluation.problems else Comparison.of(evaluation, config, base).finished()


@attrs.define(slots=False)
class Comparison:
    """An evaluation as it is `here`, and as it was in the checkout `there`; `data` is the config with what is added.

    `files` are those that differ, or that Git does not know.
    """

    now: Evaluation
    before: Evaluation
    base: Base
    here: Place
    there: Place
    files: Sequence[str]
    submodules: Sequence[str]
    data: dict[str, Any]
    flag: str
    is_new: bool
    problems: dict[Problem, None] = attrs.field(factory=dict)
    notices: dict[Problem, None] = attrs.field(factory=dict)

    @classmethod
    def of(cls, evaluation: Evaluation, config: Path, base: Base, flag: str = "--against") -> Comparison:
        """Read the config of the checkout; one that is not there is taken to be as today's."""
        real = config.resolve()
        repository = Repository.of(real.parent)
        here = Place.of(repository.top, real.parent)
        there = here.in_checkout(Path(base.folder).resolve())
        file = there.folder / real.name
        before = read_evaluation(attrs.evolve(Source.read(file if file.is_file() else real), base=there.folder))
        data = evaluation.source.data
        data = {**data, **{name: dict(data.get(name) or {}) for name in ("contexts", "conditions")}}
        files, modules = repository.changed(base.commit), repository.submodules(base.commit)
        return cls(evaluation, before, base, here, there, files, modules, data, flag, not file.is_file())

    @cached_property
    def name(self) -> str:
        """What the base is called: its ref, and the beginning of its hash."""
        ref, short = self.base.ref.removesuffix("..."), self.base.commit[:7]
        return short if self.base.commit.startswith(ref) else f"{_NOT_IN_LABELS.sub('_', ref)}@{short}"

    def __attrs_post_init__(self) -> None:
        self._now, self._before = ({spec.label: spec for spec in each.contexts} for each in (self.now, self.before))

    def finished(self) -> Evaluation:
        """Return the evaluation with all that differed added to it."""
        if self.is_new:
            self.tell(f"{self.now.source.name} is not there, so only files that it names are compared")
        arms: dict[str, str] = {}
        changed: dict[str, tuple[str, ...]] = {}
        for label in self.now.conditions:
            if label not in self.before.conditions:
                self.tell(f"{label!r} is new since then, and held against nothing")
            elif told := self.of_condition(label):
                arms[label], changed[label] = f"{label} ({self.name})", tuple(told)
                self.data["conditions"][arms[label]] = self._condition(label)
        if self.problems:
            return attrs.evolve(self.now, problems=tuple(self.problems))
        self.tell_unknown()
        added = f"added {' and '.join(repr(label) for label in arms.values())}"
        self.tell(added if arms else "no condition differs from what it was then, so nothing is held against it")
        base = attrs.evolve(self.base, arms=arms, changed=changed)
        self.data["against"] = attrs.asdict(base)
        section = self.now.with_section(attrs.evolve(self.now.section(Against), against=base))
        noted = attrs.evolve(section, notices=(*section.notices, *self.notices))
        return with_conditions(noted, self.data, {label: of for of, label in arms.items()})

    def of_condition(self, label: str) -> list[str]:
        """Return what differs of a condition."""
        now, before = (attrs.asdict(each.conditions[label]) for each in (self.now, self.before))
        told = [key for key in now if now[key] != before[key] and key not in _OF_TASKS]
        return [*told, *(part for context in before["contexts"] for part in self._of_context(context))]

    def _of_context(self, label: str) -> list[str]:
        """Return what differs of a context, or of one that it derives from."""
        before, now = self._before.get(label), self._now.get(label)
        if before is None or now is None:
            return [label] if before else []
        told = [label] if _written(before) != _written(now) else []
        if before.base is not None:
            return [*told, *self._of_context(before.base)]
        sources = [*sources_of(now, self.here), *sources_of(before, self.there)]
        for path in self.submodules:
            if any(f"{each}/".startswith(f"{path}/") for each in sources):
                self._wrong(f"the context {label!r} is in the submodule {path}, which is not checked out")
        # No agent is given what evaluates a skill.
        parts = ((file, re.split(r"/evals(?:/|\.json$)", f"/{file}")[0]) for file in touched(self.files, sources))
        files = [file for file, skill in parts if not Path(f"{self.here.top}{skill}", "SKILL.md").is_file()]
        return [*told, f"{label}: {', '.join(shortened(files))}"] if files else told

    def _condition(self, label: str) -> dict[str, Any]:
        """Return a condition as it was, with today's tasks."""
        written = (self.before.source.data.get("conditions") or {}).get(label) or {}
        today = (self.data["conditions"].get(label)) or {}
        kept = {key: value for key, value in written.items() if key not in _OF_TASKS}
        contexts = [self._context(each) for each in self.before.conditions[label].contexts]
        tasks = {key: today[key] for key in _OF_TASKS if key in today}
        return {**kept, **tasks, **({"contexts": contexts} if contexts else {})}

    def _context(self, label: str) -> str:
        """Add a context as it was, if it differs, and return its label."""
        if not self._of_context(label):
            return label
        before, contexts = self._before[label], self.data["contexts"]
        name = f"{label} ({self.name})" if label in self._now else label
        if before.base is not None:
            contexts[name] = {**before.changes, "from": self._context(before.base)}
            return name
        options = moved(before, self.here, self.there)
        if not is_started_in(before, self.there) and _written(before) == _written(self._now.get(label, before)):
            told = (
                "would be today's: nothing in its entry leads to the checkout; start it by a path, or give its `cwd:`"
            )
            self._wrong(f"the context {label!r} {told}")
        contexts[name] = {"from": label, "revision": options} if label in self._now else options
        contexts[name] |= before.changes
        return name

    def tell_unknown(self) -> None:
        """Tell of changed files that the config does not name, where there is a server whose files nobody names."""
        servers = [spec for spec in self._now.values() if spec.type == "stdio" and "watch" not in spec.options]
        named = {"config": Path(self.now.source.name).name, **self.now.source.data}
        known = [each for spec in self._now.values() for each in sources_of(spec, self.here)]
        known += files_in(named, self.here)
        others = [each for each in self.files if each not in touched(self.files, known)]
        if servers and others:
            told = f"changed files that nothing names: {', '.join(shortened(others))}"
            self.tell(f"{told}; if one is code of {servers[0].label!r}, name it there by `watch: [PATH]`")

    def tell(self, told: str) -> None:
        self.notices[Problem(f"{self.flag} {self.base.ref}", told)] = None

    def _wrong(self, told: str) -> None:
        self.problems[Problem(f"{self.flag} {self.base.ref}", told)] = None


def shortened(files: Sequence[str]) -> list[str]:
    """Return the first few, and how many more there are."""
    return [*files[:_SHOWN], *([f"{len(files) - _SHOWN} more"] if len(files) > _SHOWN else [])]


def _written(spec: PluginSpec) -> tuple[object, ...]:
    """Return what a config says of a context, without what says only where its files are."""
    return spec.type, {key: value for key, value in spec.options.items() if key != "watch"}, spec.changes
