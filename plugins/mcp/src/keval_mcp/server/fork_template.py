"""The template: a process that has imported what a Python server imports, and forks the server's processes.

It is this file, run as a script by the server's own Python, which need not have keval: `python FLAGS fork_template.py
SUPERVISOR PROGRAM`, where SUPERVISOR is the file of keval's supervisor, PROGRAM is what follows the flags in the
server's own command, and standard input is a socket. Each message there asks for a process: its environment and its
working folder as JSON, with four descriptors: its standard input, output and error, and a socket that gets its id, and
ends the process when it is closed. The template ends with the socket on its standard input.

The first process imports everything itself, which is recorded. For all others the packages among that are imported
before: what is of Python's own library or installed, and is not the program's own. What leaves a thread or an open file
behind when it is imported, which no fork may have, is left to each process.
"""

from __future__ import annotations

import atexit
import gc
import importlib.util
import json
import os
import runpy
import site
import socket
import sys
import sysconfig
import threading
import types
import zipfile
from contextlib import suppress
from importlib.machinery import PathFinder

# Not from `typing`, which every process of the server would then have imported.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, NoReturn, TypeAlias

    Supervise: TypeAlias = Callable[[Callable[[], object], int], int]

_LONGEST = 2**20
"""Bytes of a request at most; the system takes no environment that is much larger."""


def _run(supervisor: str, program: list[str]) -> None:
    """Fork processes of a program as long as they are asked for."""
    supervise = _load(supervisor)
    control = socket.socket(fileno=0)
    recorder = _Recorder(os.memfd_create("imported"))
    sys.meta_path.insert(0, recorder)
    if not _fork_next(control, supervise, program):
        return
    sys.meta_path.remove(recorder)
    if not control.recv(1, socket.MSG_PEEK):  # no second one is asked for
        return
    names, own = recorder.imported(_own_package(program))
    refused: set[str] = set()
    while True:
        reading, writing = os.pipe()
        # An import cannot be undone. So each attempt is made in a process of its own, which serves as the template
        # unless a package left something behind; the next attempt is made without that package.
        if not (process := os.fork()):
            os.close(reading)
            if (left := _import([name for name in names if _package(name) not in refused], own)) is not None:
                os.write(writing, left.encode())
                os._exit(0)
            os.close(writing)
            while _fork_next(control, supervise, program):
                pass
            os._exit(0)
        os.close(writing)
        with open(reading, encoding="utf-8") as told:
            left = told.read()
        if not left:
            break
        refused.add(left)
    os.waitpid(process, 0)


def _load(path: str) -> Supervise:
    """Return the function `supervise` of keval's supervisor."""
    spec = importlib.util.spec_from_file_location("keval_supervisor", path)
    assert spec is not None  # noqa: S101 - it is a Python file
    assert spec.loader is not None  # noqa: S101
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    supervise: Supervise = module.supervise
    return supervise


class _Recorder:
    """Notes the name of each module that is imported, and its file, in `file`; it finds none itself."""

    def __init__(self, file: int) -> None:
        self._file = file

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: types.ModuleType | None = None) -> None:
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.origin is not None:
            os.write(self._file, f"{name}\t{spec.origin}\n".encode(errors="surrogateescape"))

    def imported(self, own_package: str | None) -> tuple[list[str], set[str]]:
        """Return the modules of packages, in the order in which they were imported, and those of the program itself."""
        with open(self._file, encoding="utf-8", errors="surrogateescape") as file:
            file.seek(0)
            found = dict(line.split("\t", 1) for line in file.read().splitlines())
        paths = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
        folders = tuple(f"{path}{os.sep}" for path in (*paths, *site.getsitepackages(), site.getusersitepackages()))
        own = {name for name, file in found.items() if not file.startswith(folders) or _package(name) == own_package}
        return [name for name in found if name not in own], own


def _own_package(program: list[str]) -> str | None:
    """Return the installed package that is the program itself: one that is run, or whose script is."""
    if program[0] == "-m":
        return _package(program[1])
    from importlib.metadata import entry_points

    scripts = entry_points(group="console_scripts")
    return next((_package(each.value) for each in scripts if each.name == os.path.basename(program[0])), None)


def _package(name: str) -> str:
    return name.partition(":")[0].partition(".")[0]


def _import(names: list[str], own: set[str]) -> str | None:
    """Import modules; returns the package of one that leaves something behind which a fork must not have."""
    before = _open()
    for name in names:
        try:
            importlib.import_module(name)
        except Exception:  # noqa: BLE001, S112 - as in the program, which has another way, or says what is wrong
            continue
        # A package may import modules of the program itself, which each process must run anew.
        if _open() != before or not own.isdisjoint(sys.modules):
            return _package(name)
    # What stands in the buffers would be written by every fork.
    sys.stdout.flush()
    sys.stderr.flush()
    gc.collect()
    # A collection in a fork would otherwise touch, and so copy, the memory that forks share.
    gc.freeze()
    return None


def _open() -> tuple[int, set[str]]:
    """Return how many threads there are, and which descriptors."""
    return len(os.listdir("/proc/self/task")), {*os.listdir("/proc/self/fd")}


def _fork_next(control: socket.socket, supervise: Supervise, program: list[str]) -> bool:
    """Wait until a process is asked for, and fork it with a supervisor of its own; returns whether one was."""
    data, descriptors, _, _ = socket.recv_fds(control, _LONGEST, 4, socket.MSG_CMSG_CLOEXEC)
    if not data:
        return False
    if not os.fork():
        code = 1
        try:
            os.setsid()
            control.detach()
            *streams, watched = descriptors
            for descriptor, given in enumerate(streams):
                os.dup2(given, descriptor)
                os.close(given)
            os.write(watched, b"%d\n" % os.getpid())
            code = supervise(lambda: _begin(program, json.loads(data), watched), watched)
        except Exception:  # noqa: BLE001 - it must not go on as a template, also if who asked for it is gone
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(code)
    for descriptor in descriptors:
        os.close(descriptor)
    with suppress(ChildProcessError):  # there is none any more
        # Nobody else waits for forks that have ended, and they would stay as zombies.
        while os.waitpid(-1, os.WNOHANG)[0]:
            continue
    return True


def _begin(program: list[str], request: dict[str, Any], watched: int) -> NoReturn:
    """Run the program as Python runs it, and end with its exit code."""
    code: object = 1
    try:
        os.close(watched)
        # Python adds LC_CTYPE when it starts, where it takes UTF-8 in place of ASCII (PEP 538).
        added = {name: os.environ[name] for name in ("LC_CTYPE",) if name in os.environ}
        os.environ.clear()
        os.environ.update({**added, **request["env"]})
        if request["cwd"] is not None:
            os.chdir(request["cwd"])
        if (numpy := sys.modules.get("numpy.random")) is not None:  # `random` seeds itself after a fork
            numpy.seed()
        try:
            _main(program)
            code = 0
        except SystemExit as exit_:
            code = exit_.code or 0
        except BaseException:  # noqa: BLE001 - as Python does
            sys.excepthook(*sys.exc_info())
        if not isinstance(code, int):
            sys.stderr.write(f"{code}\n")
            code = 1
        # What Python does when it ends, but for taking every module apart.
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code if isinstance(code, int) else 1)


def _main(program: list[str]) -> None:
    """Run what follows the flags of Python in a command."""
    main = types.ModuleType("__main__")
    main.__dict__["__builtins__"] = __builtins__
    sys.modules["__main__"] = main
    # The program is to see its own command, without the template and the supervisor in it.
    begin = sys.orig_argv.index(__file__)
    del sys.orig_argv[begin : begin + 2]
    what, *arguments = program
    if what == "-m":
        sys.argv = ["-m", *arguments[1:]]
        _look_first(os.getcwd())
        runpy._run_module_as_main(arguments[0])  # type: ignore[attr-defined]  # which `python -m` itself calls
        return
    if what == "-c":
        sys.argv = ["-c", *arguments[1:]]
        _look_first("")
        exec(compile(arguments[0], "<string>", "exec", dont_inherit=True), main.__dict__)  # noqa: S102
        return
    sys.argv = program
    if os.path.isdir(what) or zipfile.is_zipfile(what):
        sys.path.insert(0, what)
        runpy._run_module_as_main("__main__", False)  # type: ignore[attr-defined]  # as above
        return
    _look_first(os.path.dirname(os.path.realpath(what)))
    main.__dict__["__file__"] = what
    with open(what, "rb") as file:
        exec(compile(file.read(), what, "exec", dont_inherit=True), main.__dict__)  # noqa: S102


def _look_first(folder: str) -> None:
    """Import from the program's folder first, unless Python was told not to."""
    if not (sys.flags.isolated or getattr(sys.flags, "safe_path", False)):
        sys.path.insert(0, folder)


if __name__ == "__main__":
    # Python puts the folder of this script first, where keval's modules would hide modules of the server.
    if sys.path[0] == os.path.dirname(os.path.abspath(__file__)):
        del sys.path[0]
    _run(sys.argv[1], sys.argv[2:])
