"""The supervisor: a small process between keval and each process that it starts, which ends with keval.

`supervised` puts it in front of a command. It is this file, run as a script: it starts the command, passes its exit
code on, and kills every process that descends from it when keval ends, in whatever way, or when it is told to end.
On Linux it adopts processes whose parent has exited (`PR_SET_CHILD_SUBREAPER`), so `setsid` and double forks do not
lead out of its reach. On other systems commands are started as they are.

Each server waits for this script to start, so it imports as little as possible and nothing of keval.
"""

from __future__ import annotations

import os
import sys

# Type checkers take this name for that of `typing`, which the script need not import then.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_GRACE = 1.0
"""Seconds between SIGTERM and SIGKILL. The MCP SDK kills the supervisor itself after two."""
_GIVING_UP = 5.0
"""Seconds after which a process that even SIGKILL does not end is left alone, such as one of another user."""
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_CANNOT_START = 127
"""What a shell exits with when it cannot start a command."""


def supervised(command: Sequence[str]) -> tuple[str, ...]:
    """Return the command that runs `command` under a supervisor that ends with this process.

    To end it, send SIGTERM or close what it reads. Give it a session of its own (`start_new_session`), so that Ctrl-C
    in a terminal does not reach it.
    """
    if sys.platform != "linux" or not sys.executable:
        return tuple(command)
    # Isolated and without site-packages: the server's PYTHON… variables do not reach it, and it starts sooner.
    return (sys.executable, "-I", "-S", _script(), str(os.getpid()), *command)


def search_path(path: str | None = None) -> str:
    """Return the PATH on which the programs of a config are searched: `path`, or the user's.

    In a virtual environment its programs come first, as if that were active, so that `python` has what is installed
    with keval. Where another environment is active, as beside a keval that is a tool of uv, they come last.
    """
    path = os.environ.get("PATH", os.defpath) if path is None else path
    if sys.prefix == sys.base_prefix:
        return path
    active = os.environ.get("VIRTUAL_ENV") or os.environ.get("CONDA_PREFIX") or sys.prefix
    own = os.path.dirname(sys.executable)
    return os.pathsep.join([own, path] if active == sys.prefix else [path, own])


def _script() -> str:
    """Return this file, compiled if that was kept since it changed: Python compiles a script each time it starts."""
    compiled = __spec__.cached or __file__
    try:
        return compiled if os.path.getmtime(compiled) >= os.path.getmtime(__file__) else __file__
    except OSError:  # nothing was kept
        return __file__


def _supervise(keval: int, command: list[str]) -> int:
    """Run a command until it, or the process `keval`, ends, and end what descends from it; returns its exit code."""
    # The public modules `ctypes` and `signal` take five milliseconds each to import.
    from _signal import (  # type: ignore[import-not-found]
        SIGCHLD,
        SIGHUP,
        SIGINT,
        SIGKILL,
        SIGTERM,
        set_wakeup_fd,
        signal,
    )
    from select import POLLIN, poll
    from time import monotonic

    poller, kept, interval = poll(), {0, 1, 2}, None
    try:
        watched = os.pidfd_open(keval)  # readable when the process ends
    # keval has ended already, so nothing is started.
    except ProcessLookupError:
        return 1
    except OSError:  # a kernel before 5.3: nothing wakes the poll when keval ends, so it looks twice a second
        interval = 500
    else:
        poller.register(watched, POLLIN)
        kept.add(watched)
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    # Python resumes a poll after a signal (PEP 475). What the signal writes to this pipe ends it, also if it comes just
    # before the poll.
    woken, wake = os.pipe()
    for end in (woken, wake):
        os.set_blocking(end, False)
    server = _start(command)
    # Only the server holds what it was given, such as the other ends of its pipes, so that keval sees it close them.
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    _close_all_but(kept | {woken, wake})
    told: list[int] = []
    set_wakeup_fd(wake, warn_on_full_buffer=False)
    poller.register(woken, POLLIN)
    # Only a signal with a handler in Python writes to the pipe.
    signal(SIGCHLD, lambda *_: None)
    for number in (SIGTERM, SIGHUP, SIGINT):
        signal(number, lambda number, _: told.append(number))

    def wait(milliseconds: int | None) -> bool:
        """Wait for a signal or the end of keval; returns whether keval lives."""
        ready = [descriptor for descriptor, _ in poller.poll(milliseconds)]
        if woken in ready:
            os.read(woken, 4096)
        if interval is not None:
            return os.path.exists(f"/proc/{keval}")
        return all(descriptor == woken for descriptor in ready)

    code, alone = _reap(server)
    while code is None and not told and wait(interval):
        code, alone = _reap(server)
    began, number = monotonic(), SIGTERM
    asked: set[int] = set()
    while not alone and monotonic() - began < _GIVING_UP:
        if monotonic() - began >= _GRACE:
            number, asked = SIGKILL, set()
        # Looked up each time, as a process that is asked to end may start others.
        for process in _descendants():
            if process not in asked:
                asked.add(process)
                _send(process, number)
        wait(20)
        ended, alone = _reap(server)
        code = ended if code is None else code
    # the code that a shell gives to an end by a signal
    return 128 + SIGKILL if code is None else code if code >= 0 else 128 - code


def _close_all_but(kept: set[int]) -> None:
    for name in os.listdir("/proc/self/fd"):
        if int(name) not in kept:
            try:
                os.close(int(name))
            except OSError:  # the one by which they were listed
                continue


def _start(command: list[str]) -> int:
    """Start a command, which is killed if this process is, with the environment as it came; returns its process id."""
    from _signal import SIG_DFL, SIGKILL, SIGPIPE, SIGXFSZ, signal

    parent = os.getpid()
    if process := os.fork():
        return process
    # Whatever happens, the child must not return and go on as a second supervisor.
    try:
        _prctl(_PR_SET_PDEATHSIG, SIGKILL)
        # The parent may have ended before the child asked to be killed with it.
        if os.getppid() == parent:
            # Python has added to `os.environ`.
            with open("/proc/self/environ", "rb") as file:
                environ = dict(entry.split(b"=", 1) for entry in file.read().split(b"\0") if b"=" in entry)
            for number in (SIGPIPE, SIGXFSZ):  # which Python ignores
                signal(number, SIG_DFL)
            os.execvpe(command[0], command, environ)  # noqa: S606 - no shell is wanted
    except OSError as error:
        os.write(2, f"{command[0]} cannot be started: {error.strerror}\n".encode(errors="replace"))
    finally:
        os._exit(_CANNOT_START)


def _prctl(option: int, value: int) -> None:
    from _ctypes import call_function, dlopen, dlsym

    program = dlopen(None, 0)  # type: ignore[arg-type]  # this program itself
    call_function(dlsym(program, "prctl"), (option, value, 0, 0, 0))


def _reap(server: int) -> tuple[int | None, bool]:
    """Return the server's exit code if it has ended just now, and whether no process is left."""
    code = None
    try:
        while True:
            # Any child: a subreaper has the orphans of the server, too.
            process, status = os.waitpid(-1, os.WNOHANG)
            if process == 0:
                return code, False
            if process == server:
                code = os.waitstatus_to_exitcode(status)
    except ChildProcessError:
        return code, True


def _descendants() -> Iterator[int]:
    waiting = [os.getpid()]
    while waiting:
        found = _children(waiting.pop())
        yield from found
        waiting += found


def _children(process: int) -> list[int]:
    found = []
    try:
        # By thread: each file has only the children that its thread has forked (proc(5)).
        for task in os.listdir(f"/proc/{process}/task"):
            with open(f"/proc/{process}/task/{task}/children", "rb") as file:
                found += [int(child) for child in file.read().split()]
    except OSError:  # it has ended since
        return found
    return found


def _send(process: int, number: int) -> None:
    try:
        os.kill(process, number)
    except OSError:  # it has ended since, or belongs to another user
        return


if __name__ == "__main__":
    os._exit(_supervise(int(sys.argv[1]), sys.argv[2:]))
