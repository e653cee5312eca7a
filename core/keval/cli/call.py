"""A call of a command, and the options that packages add to commands."""

from __future__ import annotations

import functools
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import attrs
import click

from keval.seams import registry

if TYPE_CHECKING:  # they import what `--help` does not need
    from keval.config.evaluation import Evaluation
    from keval.plan.plan import Plan
    from keval.run.active_run import RunOptions
    from keval.run.conclusion import Summary
    from keval.run.select import Selection
    from keval.store.run import Run

F = TypeVar("F", bound=Callable[..., Any])


@attrs.define(eq=False)
class CommandCall:
    """A command that is being carried out: what it is asked for, which options of packages change before it begins.

    `root` is the results directory, `run` the run that is gone on with or scored again. `config` and `selection` are
    what a new run is made of. `changes` are made to the evaluation, in their order, `watchers` are further hook
    plugins, and what is on the `stack` is closed at the end. With `record`, the traffic of the run is kept. `given`
    reaches the summary. `planned` yields what is run in place of the plan of the config.
    """

    root: Path
    config: Path | None = None
    selection: Selection | None = None
    run: Run | None = None
    changes: list[Callable[[Evaluation], Evaluation]] = attrs.field(factory=list)
    watchers: list[tuple[str, object]] = attrs.field(factory=list)
    record: bool = False
    given: dict[str, Any] = attrs.field(factory=dict)
    planned: Callable[[CommandCall], AbstractContextManager[Planned]] | None = None
    stack: ExitStack = attrs.field(factory=ExitStack)

    @classmethod
    @contextmanager
    def begun(cls, added: Mapping[CommandOptions, Mapping[str, Any]], **asked: Any) -> Iterator[CommandCall]:
        """Yield the call that the options of packages make of what is asked. Raises KevalError."""
        with ExitStack() as stack:
            call = cls(**asked, stack=stack)
            for options, values in added.items():
                options.apply(call, **values)
            yield call

    def changed(self, evaluation: Evaluation) -> Evaluation:
        """Return an evaluation with what options change."""
        for change in self.changes:
            evaluation = change(evaluation)
        return evaluation


@attrs.frozen
class Planned:
    """A plan, and what runs it as `keval.run.flow.run_plan` does; `again` says how to go on if it is interrupted."""

    plan: Plan
    run: Callable[[Plan, Path, RunOptions], Coroutine[Any, Any, tuple[Run, Summary]]]
    again: str | None = None


@attrs.frozen(eq=False)
class CommandOptions:
    """Options that a package adds to a command. Group `keval.options`, by `COMMAND/NAME`.

    `options` are decorators of click, and `apply` takes the call, and their values by name.
    """

    options: Sequence[Callable[[Any], Any]]
    apply: Callable[..., None]

    @property
    def parameters(self) -> list[click.Parameter]:
        """The options as a command has them."""

        def bare() -> None:
            pass

        # click tells the names of options only by decorating a function, on which it leaves `__click_params__`.
        for option in self.options:
            option(bare)
        return [*getattr(bare, "__click_params__", [])]


def added_options(command: str) -> Callable[[F], F]:
    """Add the options of packages to a command, which gets what was given of them as `added`."""

    def decorate(function: F) -> F:
        found = [each for each in registry.components("keval.options") if each.name.partition("/")[0] == command]
        sets: dict[CommandOptions, list[str]] = {}
        for options in map(registry.load, found):
            sets[options] = [str(each.name) for each in options.parameters]

        @functools.wraps(function)
        def with_added(**given: Any) -> Any:
            added = {options: {name: given.pop(name) for name in names} for options, names in sets.items()}
            return function(added=added, **given)

        # Reversed, because the decorator that is applied last stands first in `--help`.
        every = [option for options in sets for option in options.options]
        return functools.reduce(lambda made, option: option(made), reversed(every), with_added)  # type: ignore[return-value]

    return decorate
