"""Plugins in files of the user's: what a config names `FILE.py:NAME`, in place of the name of an installed plugin."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import Any

from keval import Scale, Score, Trial
from keval.plugin import PluginError, TrialError, read_input, suggestion
from keval_python.target import import_file, needed_parameters, signature, with_calls

_NAMES = ("trial", "sample", "question", "output", "answer")
"""What a metric's function is given, by the names of its parameters."""


def component(group: str, name: str) -> tuple[str, str, str, str, str]:
    """Return the fields of a `keval.seams.registry.Component`: its version is the digest of the file.

    The manifest of a run has that digest, so that the run does not go on with another file, and each score, too.

    Raises PluginError: the file cannot be read.
    """
    file, attribute = _parts(name)
    try:
        digest = sha256(read_input(file)).hexdigest()[:12]
    except OSError as error:
        told = f"the file {file} cannot be read: {error.strerror or error}; it is relative to the config"
        raise PluginError(told) from error
    return group, attribute or file.name, name, file.name, digest


def load(component: Any) -> Any:
    """Import the file of a component, once for each content, and return what the component names in it.

    A file alone is a hook plugin, and a function a metric.

    Raises PluginError: it does not import, or has no such plugin.
    """
    file, name = _parts(component.target)
    module = _module(file.resolve(), component.version)
    own = [each for each, value in vars(module).items() if getattr(value, "__module__", None) == module.__name__]
    if name is None:
        if component.group != "keval":
            near = f"; it has {', '.join(own)}" if own else ""
            raise PluginError(f"{file.name} is a file; name what in it is the {component.kind}: {file.name}:NAME{near}")
        if not any(hasattr(value, "keval_impl") for value in vars(module).values()):
            raise PluginError(f"{file.name} has no hook; mark functions such as keval_run_finished with @hookimpl")
        return module
    found = getattr(module, name, None)
    if found is None:
        raise PluginError(f"{file.name} has no {name!r}{suggestion(name, own, 'names')}")
    if inspect.isroutine(found) and component.group == "keval.agents":
        raise PluginError(f"{name} is a function; write `{{type: python, target: {file.name}:{name}}}`")
    return FunctionMetric(found, file) if inspect.isroutine(found) and component.group == "keval.metrics" else found


class FunctionMetric:
    """A metric that is a function. Its attributes `scale` and `blocks` are those of the metric."""

    def __init__(self, function: Callable[..., Any], file: Path) -> None:
        self.scale: Scale = getattr(function, "scale", Scale())
        self.blocks: bool = getattr(function, "blocks", False)
        self.help = inspect.getdoc(function) or ""
        self._function, self._name = function, f"{function.__name__}() of {file.name}"
        self._takes = tuple(each.name for each in needed_parameters(function) or ())
        if len(self._takes) == 1 and self._takes[0] not in _NAMES:
            self._takes = ("trial",)
        if not self._takes or {*self._takes} - {*_NAMES}:
            raise PluginError(
                f"{function.__name__}{signature(function)} of {file.name} does not take what keval gives it;"
                f" let it take the trial, or any of {', '.join(_NAMES)}, with a default for all else"
            )

    def score(self, trial: Trial) -> Any:
        """Score a trial; see `keval.plugin.Metric`."""
        if "answer" in self._takes and trial.sample.answer is None:
            return Score(None, "the sample has no answer")
        given = {"trial": trial, "sample": trial.sample, "answer": trial.sample.answer}
        with self._explaining():
            values = (given[name] if name in given else getattr(trial, name) for name in self._takes)
            returned = self._function(*values)
        return self._awaited(returned) if inspect.isawaitable(returned) else returned

    async def _awaited(self, pending: Any) -> Any:
        with self._explaining():
            return await pending

    @contextmanager
    def _explaining(self) -> Iterator[None]:
        try:
            yield
        except TrialError:
            raise
        except (Exception, SystemExit) as error:
            kind = type(error).__name__
            said = with_calls(error).removeprefix(f"{kind}: ")
            raise TrialError(f"{self._name}: {said}", stage="score", kind=kind) from error


def _parts(name: str) -> tuple[Path, str | None]:
    """Return the file that a name has, and what it names in it."""
    path, colon, attribute = name.rpartition(":")
    return (Path(path), attribute) if colon and attribute.isidentifier() else (Path(name), None)


@cache
def _module(file: Path, digest: str) -> ModuleType:
    """Import a file, whose content has this digest."""
    try:
        return import_file(file)
    except (Exception, SystemExit) as error:  # the user's code may raise anything
        raise PluginError(
            f"the file {file.name} cannot be imported; correct it, or install what it imports: {with_calls(error)}"
        ) from error
