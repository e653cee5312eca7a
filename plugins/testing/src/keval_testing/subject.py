"""The plugin that is checked, what all kits have it do, and which rules it breaks.

It is found by name, or given as a class or as an instance, and constructed from its options. Its calls are made as a
run makes them: prepared and closed, and cancelled in between. Whatever it leaves behind breaks a rule.
"""

from __future__ import annotations

import asyncio
import gc
import inspect
import json
import os
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import attrs

from keval.config.structure import resolve_fields, structure
from keval.errors import PluginError
from keval.plan.construct import METHODS
from keval.plugin import Model, suggestion
from keval.seams import registry
from keval.seams.interfaces import Closable, Preparable

_MOST_SHOWN = 3
"""How often a message shows a rule that is broken again and again."""


@attrs.frozen
class BrokenRule:
    """A rule of a seam that a plugin breaks: its name, what was seen, and how to mend it."""

    rule: str
    what: str
    remedy: str


class BrokenRulesError(AssertionError):
    """A plugin breaks rules of its seam. `broken` has each of them; the message says what was seen and the remedies."""

    def __init__(self, plugin: str, broken: Sequence[BrokenRule]) -> None:
        self.plugin, self.broken = plugin, tuple(broken)
        many = "a rule" if len(self.rules) == 1 else f"{len(self.rules)} rules"
        lines = [f"{plugin} breaks {many}:"]
        for rule in self.rules:
            found = [each for each in broken if each.rule == rule]
            lines += [f"  {rule}: {each.what}" for each in found[:_MOST_SHOWN]]
            if len(found) > _MOST_SHOWN:
                lines.append(f"  {rule}: and {len(found) - _MOST_SHOWN} times more")
            lines.append(f"    -> {found[0].remedy}")
        super().__init__("\n".join(lines))

    @property
    def rules(self) -> tuple[str, ...]:
        """The names of the broken rules, each once."""
        return tuple(dict.fromkeys(each.rule for each in self.broken))


_RULES = json.loads(Path(__file__).with_name("rules.json").read_text(encoding="utf-8"))
OPTIONS_RULES: Mapping[str, str] = _RULES["options"]
"""The rules of every plugin, with their remedies."""


def rules_of(kind: str, rules: Mapping[str, Mapping[str, str]] = _RULES) -> Mapping[str, str]:
    """Return the rules of a kind of plugins, and of all, each with how to mend one that breaks it."""
    return {**OPTIONS_RULES, **rules[kind], **_RULES["left behind"]}


_METHODS = {**METHODS, "keval.datasets": ("read",), "keval.exporters": ("export",)}
_UNKNOWN = "no_such_option"


@attrs.frozen
class Subject:
    """A plugin of one group, to be checked by rules, and what it was found to break.

    `target` is its class, or an instance. `options` are as a config has them: a path or a model is a text. `remedies`
    are those of each rule, by name. Rules that it `cannot` keep, which have the reason in place of a remedy, are not
    noted.
    """

    group: str
    name: str
    target: Any
    options: Mapping[str, Any]
    remedies: Mapping[str, str]
    cannot: Mapping[str, str] = attrs.field(factory=dict)
    found: list[BrokenRule] = attrs.field(factory=list, init=False)

    def __attrs_post_init__(self) -> None:
        for rule in self.cannot:
            if rule not in self.remedies:
                raise ValueError(f"there is no rule {rule!r}{suggestion(rule, self.remedies, 'the rules are')}")

    @classmethod
    def of(
        cls,
        group: str,
        plugin: Any,
        options: Mapping[str, Any] | None,
        remedies: Mapping[str, str],
        cannot: Mapping[str, str] | None = None,
    ) -> Subject:
        """Find a plugin by its name, or take a class or an instance. Raises PluginError: none is installed so."""
        if isinstance(plugin, str):
            name, target = plugin, registry.load(registry.find(group, plugin))
        elif options and not isinstance(plugin, type):
            raise TypeError("options are for a class or a name; construct the instance with them")
        else:
            made_of, target = plugin if isinstance(plugin, type) else type(plugin), plugin
            name = f"{made_of.__module__}.{made_of.__qualname__}"
        return cls(group, name, target, options or {}, remedies, cannot or {})

    def broken(self, rule: str, what: str) -> None:
        """Note that the plugin breaks a rule. The same finding is noted once."""
        entry = BrokenRule(rule, what, self.remedies[rule])
        if rule not in self.cannot and entry not in self.found:
            self.found.append(entry)

    def finish(self) -> None:
        """Raise BrokenRulesError if a rule was broken."""
        if self.found:
            raise BrokenRulesError(self.told, self.found)

    @property
    def told(self) -> str:
        """What messages call it."""
        return f"the {registry.GROUPS[self.group]} {self.name!r}"

    def new(self) -> Any:
        """Construct it as a run does; the same object, if it was given as an instance.

        Raises:
            PluginError: its options are wrong, or it cannot be constructed.
        """
        if not isinstance(self.target, type):
            return self.target
        if not attrs.has(self.target):
            return self.target()
        plugin, errors = structure(self.target, dict(self.options), (), Path.cwd())
        if errors:
            told = "; ".join(f"{'.'.join(map(str, error.path)) or 'options'}: {error.message}" for error in errors)
            raise PluginError(f"{self.told} cannot be constructed: {told}; give its `options`")
        return plugin

    def check_options(self) -> bool:
        """Check that it is of its seam and that its options are strict; returns whether it can be constructed."""
        if isinstance(self.target, type) and not attrs.has(self.target) and _takes_arguments(self.target):
            self.broken("options", "it is no attrs class, and its constructor takes arguments that no config gives")
            return False
        if isinstance(self.target, type) and attrs.has(self.target):
            try:
                self._check_strictness()
            except PluginError as error:
                self.broken("options", str(error))
                return False
        plugin = self.new()
        methods = _METHODS.get(self.group, ())
        if methods and not any(callable(getattr(plugin, method, None)) for method in methods):
            self.broken("seam", f"it has no method {' or '.join(f'{method}()' for method in methods)}")
            return False
        return True

    def _check_strictness(self) -> None:
        given = dict(self.options)
        # There may be other errors, of options that are not given; this one must be among them.
        _, errors = structure(self.target, {**given, _UNKNOWN: 1}, (), Path.cwd())
        if (_UNKNOWN,) not in [error.path for error in errors]:
            self.broken("options", "an unknown option is taken without a word")
        for field in attrs.fields(self.target):
            if field.init:
                # No type that an option can have takes this.
                _, errors = structure(self.target, {**given, field.name: object()}, (), Path.cwd())
                if field.name not in [error.path[0] for error in errors if error.path]:
                    self.broken("options", f"the option {field.name!r} takes a value of any type")


def model_options(plugin: Any) -> list[str]:
    """Return the names of the options that name a model, of a plugin's class or of an instance."""
    cls = plugin if isinstance(plugin, type) else type(plugin)
    if not attrs.has(cls):
        return []
    # Types of fields are texts until then, where a module has `from __future__ import annotations`.
    resolve_fields(cls)
    return [each.name for each in attrs.fields(cls) if each.init and each.type in (Model, Model | None)]


def _takes_arguments(target: type) -> bool:
    parameters = inspect.signature(target).parameters.values()
    return any(
        each.default is each.empty and each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD) for each in parameters
    )


LEFT_BEHIND = "nothing left behind"
_PATIENCE = 3.0
"""Seconds in which threads and processes may end that were told to."""
_DESCRIPTORS, _THREADS = Path("/proc/self/fd"), Path("/proc/self/task")


@attrs.frozen
class Belongings:
    """What this process has at one moment. Only Linux tells of descriptors and of processes that it started."""

    threads: frozenset[str]
    processes: frozenset[str]
    descriptors: frozenset[str]
    environment: frozenset[tuple[str, str]]
    folder: str

    @classmethod
    def now(cls) -> Belongings:
        return cls(
            frozenset(f"{thread.name} ({thread.ident})" for thread in threading.enumerate()),
            frozenset(_children()),
            frozenset(_descriptors()),
            frozenset(os.environ.items()),
            os.getcwd(),
        )

    def more_than(self, before: Belongings) -> list[str]:
        """Return what is here and was not there before, in words."""
        changed = {name for name, _ in self.environment ^ before.environment}
        found = [
            *(f"the thread {each} still runs" for each in sorted(self.threads - before.threads)),
            *(f"the process {each} still runs" for each in sorted(self.processes - before.processes)),
            *(f"{each} is still open" for each in sorted(self.descriptors - before.descriptors)),
            *(f"the environment variable {name} is changed" for name in sorted(changed)),
        ]
        return [*found, *(["the working directory is changed"] if self.folder != before.folder else [])]


def _children() -> Iterator[str]:
    # Linux lists a child under the thread that started it.
    for task in _THREADS.glob("*/children"):
        try:
            yield from task.read_text(encoding="utf-8").split()
        except OSError:  # the thread has ended
            continue


def _descriptors() -> Iterator[str]:
    for entry in _DESCRIPTORS.glob("*"):
        try:
            yield f"{os.readlink(entry)} (descriptor {entry.name})"
        except OSError:  # it was that of the listing
            continue


@contextmanager
def nothing_left_behind(subject: Subject) -> Iterator[None]:
    """Note what the block leaves behind. What is made for good at its first use must be made before the block."""
    with own_temporary_folder() as temporary:
        gc.collect()
        before = Belongings.now()
        try:
            yield
        finally:
            left = [*_settled(before), *temporary()]
        for each in left:
            subject.broken(LEFT_BEHIND, each)


@contextmanager
def own_temporary_folder() -> Iterator[Callable[[], list[str]]]:
    """Let temporary files be made in a folder of the block's own; yield what returns those that are there, in words."""
    with tempfile.TemporaryDirectory() as folder:
        # This process has asked for the variable once and for all; those that it starts ask anew.
        kept, kept_variable = tempfile.tempdir, os.environ.get("TMPDIR")
        tempfile.tempdir = os.environ["TMPDIR"] = folder
        try:
            yield lambda: [f"the temporary {each.name} is still there" for each in sorted(Path(folder).iterdir())]
        finally:
            tempfile.tempdir = kept
            if kept_variable is None:
                os.environ.pop("TMPDIR", None)
            else:
                os.environ["TMPDIR"] = kept_variable


def _settled(before: Belongings) -> list[str]:
    until = time.monotonic() + _PATIENCE
    while True:
        # What nobody holds any more closes when it is collected, and is not left behind.
        gc.collect()
        left = Belongings.now().more_than(before)
        if not left or time.monotonic() > until:
            return left
        time.sleep(0.02)


def run_to_end(subject: Subject, main: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine in an event loop of its own, and note the tasks that are left when it is done."""

    async def watched() -> None:
        await main
        left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        if left:
            await asyncio.wait(left, timeout=_PATIENCE)  # those that were cancelled need a turn to end
        for task in left:
            if not task.done():
                subject.broken(LEFT_BEHIND, f"the task {task.get_coro()} still runs")

    asyncio.run(watched())


def run_checks(
    subject: Subject, first: Coroutine[Any, Any, None], rest: Callable[[], Coroutine[Any, Any, None]]
) -> None:
    """Run the `first` check, which imports or makes for good what it needs, and if it found nothing the `rest`."""
    run_to_end(subject, first)
    if not subject.found:
        with nothing_left_behind(subject):
            run_to_end(subject, rest())


_TURNS = (1, 2, 5)
"""After how many turns of the event loop a call is cancelled."""
_CALL_PATIENCE = 5.0
"""Seconds that a cancelled call may take to end."""


@asynccontextmanager
async def opened(plugin: Any) -> AsyncIterator[Any]:
    """Prepare a plugin for the block and close it afterwards, if it can be."""
    if isinstance(plugin, Preparable):
        await plugin.prepare()
    try:
        yield plugin
    finally:
        if isinstance(plugin, Closable):
            await plugin.aclose()


async def check_cancellation(subject: Subject, call: Callable[[], Awaitable[object]]) -> None:
    """Cancel a call while it waits, early and later, and note under `cancellation` if it goes on or hides that."""
    for turns in _TURNS:
        task = asyncio.ensure_future(call())
        for _ in range(turns):
            await asyncio.sleep(0)
        if task.done():
            # It does not wait, so it cannot be cancelled. asyncio would warn of an exception that nobody fetched.
            task.exception()
            return
        task.cancel()
        # `wait_for` would wait without an end for a call that ignores its cancellation.
        await asyncio.wait([task], timeout=_CALL_PATIENCE)
        if not task.done():
            subject.broken("cancellation", f"a call that was cancelled still ran after {_CALL_PATIENCE:g} s")
            return
        if not task.cancelled():
            outcome = task.exception() or task.result()
            subject.broken("cancellation", f"a call that was cancelled ended with {excerpt(outcome)}")
            return


def excerpt(value: object) -> str:
    """Show a value, or what was raised, on one line, shortened."""
    told = f"{type(value).__name__}: {value}" if isinstance(value, BaseException) else value
    text = " ".join((told if isinstance(told, str) else repr(told)).split())
    return text if len(text) <= 120 else f"{text[:117]}..."
