"""The target of a `python` agent: found, imported, checked, and called."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import sys
import threading
import traceback
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing, contextmanager, suppress
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType, TracebackType
from typing import Any, Literal, TypeAlias

import attrs

from keval.plugin import PreflightError, TrialError, suggestion

Form: TypeAlias = Literal["question", "history", "sample"]
"""What a function takes: the question; the question and what was said before; or a `Sample` and a `Context`."""

_MARK = "__keval_target__"
"""An attribute of the modules that a target brought in from its folder, which the next load imports anew."""
_FRAMES = 8
_ANY_NUMBER = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}
# An import changes `sys.path` and `sys.modules`, which all threads share.
_importing = threading.Lock()


@attrs.frozen
class Target:
    """A function that answers. `name` is what messages call it.

    One that `returns_transcript`, by its annotation, reports to `context.builder` itself, as an adapter does.
    """

    name: str
    function: Callable[..., Any]
    form: Form
    returns_transcript: bool

    @property
    def servers_refusal(self) -> str | None:
        """Why the function cannot be given MCP servers; `None` if it can."""
        if self.form == "sample":
            return None
        return f"{self.name} takes none; let it take a Sample and a Context, whose `servers` they are"

    async def call(self, *args: object, streamed: Callable[[str], object]) -> Any:
        """Return what the function returns; a plain function is called in a thread of its own.

        The texts that an asynchronous generator yields are handed to `streamed` and joined.

        Raises:
            TrialError: what the function raised, if it is one; else of kind `target_failed`, with that as its cause.
        """
        try:
            if inspect.iscoroutinefunction(self.function) or inspect.isasyncgenfunction(self.function):
                returned = self.function(*args)
            else:
                returned = await _in_thread(self.function, *args)
            if isinstance(returned, AsyncGenerator):
                return await self._joined(returned, streamed)
            return await returned if inspect.isawaitable(returned) else returned
        # `sys.exit()` in a function of the user's must not end keval.
        except (Exception, SystemExit) as error:
            raise _explained(error) or TrialError(
                f"{self.name} raised {with_calls(error)}", kind="target_failed"
            ) from error

    async def _joined(self, pieces: AsyncGenerator[Any, None], streamed: Callable[[str], object]) -> str:
        texts: list[str] = []
        async with aclosing(pieces):
            async for piece in pieces:
                if not isinstance(piece, str):
                    raise TrialError(f"{self.name} yielded {piece!r:.60} in place of a text", kind="bad_answer")
                texts.append(piece)
                streamed(piece)
        return "".join(texts)


def check_target(target: Path) -> None:
    """Raise ValueError if this cannot be the target of an agent; nothing is imported."""
    source, colon, function = target.name.rpartition(":")
    if not (colon and source and function.isidentifier()):
        raise ValueError(
            f"'target' must be FILE.py:FUNCTION or PACKAGE.MODULE:FUNCTION, such as my_agent.py:answer: {target.name!r}"
        )
    file = target_file(target)
    if file is not None and not file.is_file():
        raise ValueError(f"'target' must name a file that exists, and {file} does not; it is relative to the config")


def target_file(target: Path) -> Path | None:
    """Return the file that a target names; `None` if it names a module."""
    source, _, _ = target.name.rpartition(":")
    return target.with_name(source) if source.endswith(".py") else None


def load_target(target: Path) -> Target:
    """Import a target, even if it was imported before, and return its function.

    A file's folder, or the config's for a module, is importable from now on, as it is for `python FILE.py`.

    Raises:
        PreflightError: it cannot be imported, has no such function, or one that keval cannot call.
    """
    source, _, name = target.name.rpartition(":")
    try:
        if source.endswith(".py"):
            module = import_file(target.with_name(source))
        else:
            with _importing, _importable(target.parent):
                module = import_module(source)
    except (Exception, SystemExit) as error:  # the user's code may raise anything
        raise PreflightError(
            f"the target {source} cannot be imported; correct it, or install what it imports: {with_calls(error)}"
        ) from error
    function = getattr(module, name, None)
    if not callable(function):
        known = [each for each, value in vars(module).items() if inspect.isroutine(value)]
        problem = "has no function" if function is None else "has something else than a function as"
        raise PreflightError(f"the target {source} {problem} {name!r}{suggestion(name, known, 'functions')}")
    form = _form(function)
    if form is None:
        raise PreflightError(
            f"{name}{signature(function)} of {source} does not take what keval gives it; write {name}(question),"
            f" {name}(question, history) or {name}(sample: Sample, context: Context), with a default for all else"
        )
    returned = getattr(function, "__annotations__", {}).get("return")
    return Target(f"{name}() of {source}", function, form, _named(returned) == "Transcript")


def _explained(error: BaseException) -> TrialError | None:
    """Return the error if it is explained, or the first such error in a group, as task groups wrap what is raised."""
    if isinstance(error, BaseExceptionGroup):
        return next(filter(None, map(_explained, error.exceptions)), None)
    return error if isinstance(error, TrialError) else None


@contextmanager
def _importable(folder: Path) -> Iterator[None]:
    """Look for modules in a folder first, and from now on last, and forget those that earlier targets brought in."""
    for name, module in [*sys.modules.items()]:
        if _MARK in getattr(module, "__dict__", ()):
            del sys.modules[name]
    path = str(folder.resolve())
    was_there = path in sys.path
    # A new list each time: another thread may import meanwhile, and would miss an entry of a list that is changed.
    sys.path = [path, *sys.path]
    known = {*sys.modules}
    try:
        yield
    finally:
        others = [*sys.path]
        others.remove(path)
        # For what a function imports when it is called; last, so that it hides nothing of keval's.
        sys.path = others if was_there else [*others, path]
        for name in sys.modules.keys() - known:
            if _is_directly_in(folder.resolve(), name):
                setattr(sys.modules[name], _MARK, True)


def _is_directly_in(folder: Path, name: str) -> bool:
    """Return whether a module, or its package, is in the folder itself: not in an environment that the folder has."""
    file = getattr(sys.modules.get(name.partition(".")[0]), "__file__", None)
    return file is not None and folder in Path(file).parents[:2]


def import_file(file: Path) -> ModuleType:
    """Import a file under a name of its own, by which two files with the same name do not collide."""
    with _importing, _importable(file.parent):
        return _file_module(file)


def _file_module(file: Path) -> ModuleType:
    name = f"keval_target:{file.resolve()}"
    spec = spec_from_file_location(name, file)
    assert spec is not None  # noqa: S101 - for mypy: the suffix is .py
    module = module_from_spec(spec)
    sys.modules[name] = module  # where dataclasses and pickle look for it
    # Not by its loader: `__pycache__` takes a file of the same second and size for the same one.
    exec(compile(file.read_bytes(), file, "exec", dont_inherit=True), vars(module))  # noqa: S102
    return module


def needed_parameters(function: Callable[..., Any]) -> list[inspect.Parameter] | None:
    """Return the parameters that have no default; `None` if some cannot be given by their position."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # a function that is not written in Python
        return None
    needed = [each for each in parameters if each.default is each.empty and each.kind not in _ANY_NUMBER]
    return None if any(each.kind is each.KEYWORD_ONLY for each in needed) else needed


def _form(function: Callable[..., Any]) -> Form | None:
    """Return what a function takes, by the parameters that have no default; `None` if keval has no such things."""
    needed = needed_parameters(function) or []
    told = [_named(each.annotation) for each in needed]
    if len(needed) == 1 and told[0] not in {"Sample", "Context"}:
        return "question"
    if len(needed) == 2:
        first, second = needed
        if second.name == "history" and told[0] != "Sample":
            return "history"
        if "Sample" in (told[0], first.name.title()) and "Context" in (told[1], second.name.title()):
            return "sample"
    return None


def _named(annotation: Any) -> str:
    """Return the last part of the name of an annotation, which may be a text."""
    return str(getattr(annotation, "__name__", annotation)).rpartition(".")[2]


def signature(function: Callable[..., Any]) -> str:
    try:
        return str(inspect.signature(function))
    except (TypeError, ValueError):
        return "(…)"


async def _in_thread(function: Callable[..., Any], *args: object) -> Any:
    """Call a function in a thread that nothing waits for: one that does not return would stop keval from ending."""
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()
    # The function sees the trial's context variables, as with `asyncio.to_thread`.
    context = contextvars.copy_context()

    def settle(returned: Any, error: BaseException | None) -> None:
        # The trial may have given up the function.
        if not outcome.done():
            outcome.set_result((returned, error))

    def work() -> None:
        returned, raised = None, None
        try:
            returned = context.run(function, *args)
        except BaseException as error:  # noqa: BLE001 - it is raised below, where the trial is
            raised = error
        with suppress(RuntimeError):  # the loop has ended, and nobody waits any more
            loop.call_soon_threadsafe(settle, returned, raised)

    threading.Thread(target=work, daemon=True).start()
    returned, error = await outcome
    if error is not None:
        raise error
    return returned


def with_calls(error: BaseException) -> str:
    """Return an error, and the last of the user's calls that led to it."""
    frame: TracebackType | None = error.__traceback__
    while frame is not None and _is_keval(frame):
        frame = frame.tb_next
    calls = "".join(traceback.format_tb(frame)[-_FRAMES:]).rstrip()
    return f"{type(error).__name__}: {error}" + (f"\n{calls}" if calls else "")


def _is_keval(frame: TracebackType) -> bool:
    file = frame.tb_frame.f_code.co_filename
    return (
        Path(file).parent == Path(__file__).parent
        or file.startswith("<frozen importlib")
        or "importlib" in Path(file).parts
    )
