"""Runs keval commands one after the other in this process, and counts by package what Python does for each.

    python bench/tally.py COUNT RESULTS < COMMANDS

COMMANDS is a list of lists of arguments in JSON. What was counted for each is written to RESULTS, with the number of
distributions that are installed, and whether modules were compiled meanwhile, which is no part of the work. COUNT is
`calls`, `instructions` or `memory`:

- `calls` counts the functions of Python that are entered or resumed, the functions in C that they call, and the modules
  that are imported;
- `instructions` counts the instructions of bytecode that are executed, which takes about ten times as long;
- `memory` is the peak of what Python has allocated, in KiB, above what it had when the command began. It is not
  attributed.

Until the first command begins, nothing is imported but parts of the standard library, so that it starts as keval does.
"""

from __future__ import annotations

import json
import os
import re
import sys
import threading
import time
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any, Protocol

_TURNS = {
    "BaseEventLoop._run_once",
    "BaseEventLoop.time",
    "BaseSelectorEventLoop._process_events",
    "EpollSelector.select",
    "TimerHandle.__lt__",
}
"""What the event loop does for each of its turns: their number depends on when replies arrive, and on nothing else."""
_BY_THE_CLOCK = "keval-watchdog"
"""The thread that looks at the event loop each second: how often depends on how long the machine takes."""
_GENERATED = re.compile(r"<c?attrs generated \w+ ([\w.]+)[^>]*>")
"""The file that attrs and cattrs name in the code that they generate for a class, which has no module of its own."""


class Count(Protocol):
    """Counts while a block runs, in every thread."""

    def counted(self) -> dict[str, dict[str, float]]:
        """Return what was counted in the block: by unit, and by package."""

    def counting(self) -> Any:
        """Return the context of the block."""


def package(module: str) -> str:
    """Return what a module is attributed to: a room of keval, a package at the top level, or `stdlib`."""
    top, _, rest = module.partition(".")
    if top == "keval":
        return f"keval.{rest.partition('.')[0]}" if rest else "keval"
    return "stdlib" if top in sys.stdlib_module_names else top


def imported() -> Counter[str]:
    """Return the number of modules that are imported, by package."""
    return Counter(package(name) for name in sys.modules)


class Codes:
    """Numbers by code object; each is attributed when it is first seen."""

    def __init__(self, numbers: int) -> None:
        self._seen: dict[int, tuple[CodeType, str, list[int]]] = {}
        self._zeros = [0] * numbers

    def of(self, frame: FrameType) -> list[int]:
        """Return the numbers of the code that a frame runs."""
        code = frame.f_code
        seen = self._seen.get(id(code))
        if seen is None:  # it is kept, so that no other gets its id
            seen = self._seen[id(code)] = code, self._owner(frame), self._zeros.copy()
        return seen[2]

    def by_package(self, number: int) -> dict[str, float]:
        """Return the sums by package of one of the numbers."""
        sums: Counter[str] = Counter()
        for code, owner, numbers in self._seen.values():
            if code.co_qualname not in _TURNS:
                sums[owner] += numbers[number]
        del sums["__main__"]
        return {owner: count for owner, count in sorted(sums.items()) if count}

    @staticmethod
    def _owner(frame: FrameType) -> str:
        name = frame.f_globals.get("__name__", "")
        if name and not name.startswith("namedtuple_"):
            return package(name)
        generated = _GENERATED.fullmatch(frame.f_code.co_filename)
        return package(generated[1]) if generated else "generated"


class Calls:
    """Counts functions of Python, functions in C, and modules."""

    def __init__(self) -> None:
        self._codes = Codes(2)
        self._before = imported()
        self._after = self._before

    @contextmanager
    def counting(self) -> Iterator[None]:
        of = self._codes.of

        def saw(frame: FrameType, event: str, argument: object) -> None:
            if event == "call":
                of(frame)[0] += 1
            elif event == "c_call":
                of(frame)[1] += 1

        def begun(frame: FrameType, event: str, argument: object) -> None:
            sys.setprofile(None if threading.current_thread().name == _BY_THE_CLOCK else saw)

        threading.setprofile(begun)
        sys.setprofile(saw)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
            self._after = imported()

    def counted(self) -> dict[str, dict[str, float]]:
        modules = {name: float(count) for name, count in sorted((self._after - self._before).items())}
        return {"calls": self._codes.by_package(0), "calls of C": self._codes.by_package(1), "modules": modules}


class Instructions:
    """Counts instructions of bytecode."""

    def __init__(self) -> None:
        self._codes = Codes(1)

    @contextmanager
    def counting(self) -> Iterator[None]:
        start, stop = self._monitored() if sys.version_info >= (3, 12) else self._traced()
        start()
        try:
            yield
        finally:
            stop()

    def counted(self) -> dict[str, dict[str, float]]:
        return {"instructions": self._codes.by_package(0)}

    def _monitored(self) -> tuple[Callable[[], None], Callable[[], None]]:
        """Return what starts and stops counting by `sys.monitoring`."""
        monitoring: Any = sys.monitoring  # type: ignore[attr-defined,unused-ignore]  # not in Python 3.11
        tool, event, of = monitoring.PROFILER_ID, monitoring.events.INSTRUCTION, self._codes.of

        def executed(code: CodeType, offset: int) -> None:
            of(sys._getframe(1))[0] += 1

        def start() -> None:
            monitoring.use_tool_id(tool, "ledger")
            monitoring.register_callback(tool, event, executed)
            monitoring.set_events(tool, event)

        def stop() -> None:
            monitoring.set_events(tool, 0)
            monitoring.free_tool_id(tool)

        return start, stop

    def _traced(self) -> tuple[Callable[[], None], Callable[[], None]]:
        """Return what starts and stops counting by tracing."""
        of = self._codes.of

        def entered(frame: FrameType, event: str, argument: object) -> Any:
            frame.f_trace_opcodes, frame.f_trace_lines = True, False
            return executed

        def executed(frame: FrameType, event: str, argument: object) -> Any:
            if event == "opcode":
                of(frame)[0] += 1
            return executed

        def begun(frame: FrameType, event: str, argument: object) -> Any:
            sys.settrace(None if threading.current_thread().name == _BY_THE_CLOCK else entered)

        def start() -> None:
            threading.settrace(begun)
            sys.settrace(entered)

        def stop() -> None:
            sys.settrace(None)
            threading.settrace(None)

        return start, stop


class Memory:
    """Measures the peak of what Python allocates."""

    def __init__(self) -> None:
        self._before = self._peak = 0

    @contextmanager
    def counting(self) -> Iterator[None]:
        tracemalloc.start()
        self._before = tracemalloc.get_traced_memory()[0]
        try:
            yield
        finally:
            self._peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()

    def counted(self) -> dict[str, dict[str, float]]:
        return {"peak KiB": {"all": (self._peak - self._before) / 1024}}


_COUNTS: dict[str, Callable[[], Count]] = {"calls": Calls, "instructions": Instructions, "memory": Memory}


def run(command: list[str]) -> None:
    """Run a command of keval. Raises SystemExit when it fails."""
    from keval.cli import main  # what it imports is counted

    try:
        main(command, prog_name="keval")
    except SystemExit as end:
        if end.code:
            raise


def have_compiled(began: float) -> bool:
    """Return whether a module that is imported was compiled after that time."""
    paths = (getattr(module, "__cached__", None) for module in list(sys.modules.values()))
    return any(os.path.getmtime(path) >= began for path in paths if path and os.path.exists(path))


def main() -> None:
    began, results = time.time(), []
    for command in json.load(sys.stdin):
        count = _COUNTS[sys.argv[1]]()
        with count.counting():
            run(command)
        results.append(count.counted())
    from importlib import metadata  # late, as keval may import it, which is counted

    tallied = {
        "counts": results,
        "distributions": sum(1 for _ in metadata.distributions()),
        "compiled": have_compiled(began),
    }
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        json.dump(tallied, file)


if __name__ == "__main__":
    main()
