"""The sandbox that bubblewrap makes: the program sees itself, its home, its workspace, and the way to keval.

Of what was installed with a program it sees the files that it cannot run without. keval accepts what it connects to,
and passes it on to the same address here.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import attrs
from attrs.validators import ge

from keval.config.evaluation import is_size, size
from keval.errors import PreflightError, TrialError
from keval.processes import supervised
from keval.seams.contexts import SandboxedCommand
from keval_programs.confining import Limits
from keval_workspace.sandbox.prefix import problem_of

_SETTINGS = (
    *("ca-certificates", "crypto-policies", "group", "hosts", "ld.so.cache", "ld.so.conf"),
    *("ld.so.conf.d", "localtime", "mime.types", "nsswitch.conf", "os-release", "passwd", "pki/ca-trust"),
    *("pki/tls/certs", "protocols", "services", "ssl/certs", "ssl/openssl.cnf", "timezone"),
)
"""What programs need of /etc; the rest stays outside, such as private keys and the settings of services."""

_CERTIFICATES = ("SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS")

_KEVAL = "/run/keval"
"""Where the script that starts the program, and its way to keval, are inside."""

_PYTHON = os.path.realpath(sys.executable)
_INSIDE = Path(__file__).with_name("inside.py")

_ALONE = (
    # Without `--new-session`, a program could type into the user's terminal (TIOCSTI, CVE-2017-5226).
    *("--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL", "--hostname", "keval"),
    *("--proc", "/proc", "--dev", "/dev"),
)
"""Namespaces and a session of its own, without capabilities, in folders that begin empty."""

_ULIMIT = 'ulimit -c 0; ulimit -f {blocks}; {{ ulimit -u {threads} || ulimit -p {threads}; }} 2>/dev/null; exec "$@"'
"""The kernel's own limits, of one file and of all processes; shells name the latter differently, and root has none."""
_THREADS = 4
"""Threads for each process, by which Linux counts."""
_SHARE = 4
"""The part of the memory that /tmp and /dev/shm may have, each."""

_REMEDY = (
    "bubblewrap needs user namespaces: allow them (sysctl user.max_user_namespaces, on Debian"
    " kernel.unprivileged_userns_clone=1, on Ubuntu kernel.apparmor_restrict_unprivileged_userns=0), or use another"
    " sandbox"
)
_INSTALL = "install it (Debian, Ubuntu: apt install bubblewrap; Fedora: dnf install bubblewrap), or use another sandbox"
_PREFIX = "keval-trial-"
# Nobody needs to listen there: with an address, the trial of the sandbox includes the way out.
_SOMEWHERE = "http://127.0.0.1:9999"


@attrs.frozen
class Bubblewrap:
    """Shuts a program in with `bwrap`; it may also read what is at the paths `read`.

    With all that it starts it may use `max_memory`, have `max_processes`, add `max_bytes` in `max_files` to its
    folders, and write `max_stderr_bytes` on its standard error; one that uses more is ended, and its trial fails.
    """

    read: tuple[Path, ...] = ()
    max_memory: int | str = attrs.field(default="8 GB", validator=is_size)
    max_processes: int = attrs.field(default=2000, validator=ge(1))
    max_bytes: int | str = attrs.field(default="10 GB", validator=is_size)
    max_files: int = attrs.field(default=200_000, validator=ge(1))
    max_stderr_bytes: int | str = attrs.field(default="1 GB", validator=is_size)

    @property
    def limits(self) -> Limits:
        """What a program in it may use; see `keval_programs.confining`."""
        sizes = map(size, (self.max_memory, self.max_bytes, self.max_stderr_bytes))
        memory, on_disk, stderr = sizes
        return Limits(memory, self.max_processes, on_disk, self.max_files, stderr)

    def describe(self) -> Mapping[str, Any]:
        """Return what the manifest has of it."""
        return {"bubblewrap": {"read": [str(path) for path in self.read], **attrs.asdict(self.limits)}}

    async def prepare(self) -> None:
        """Start a program in it. Raises PreflightError: that does not work here."""
        if shutil.which("bwrap") is None:
            raise PreflightError(f"bubblewrap is not installed; {_INSTALL}")
        for path in self.read:
            if not path.exists():
                raise PreflightError(
                    f"{path}, which the sandbox is to show, is not there; name what is, or leave it out"
                )
        with tempfile.TemporaryDirectory(prefix=_PREFIX) as made:
            folder, env = Path(made), {"PATH": os.defpath}
            true = SandboxedCommand(["true"], folder, env, folder, folder, [folder], [_SOMEWHERE])
            async with self.command(true) as command:
                problem = await asyncio.to_thread(problem_of, supervised(command), env)
        if problem is not None:
            raise PreflightError(f"bubblewrap cannot start a program: {problem}; {_REMEDY}")

    @asynccontextmanager
    async def command(self, command: SandboxedCommand) -> AsyncIterator[Sequence[str]]:
        """Yield the words that start the command shut in; see `keval.plugin.Sandbox`."""
        addresses = addresses_of(command.urls)
        installed = await asyncio.to_thread(self._installed, command)
        shut_in = [shutil.which("bwrap") or "bwrap", *_ALONE, *installed]
        # Later mounts go over earlier ones, and these folders may lie in one that is shown read-only.
        for path in command.writable:
            shut_in += ["--bind", str(path), str(path)]
        # The root itself is in memory; it is made read-only once everything is in it.
        end = ["--chdir", str(command.cwd), "--remount-ro", "/", "--"]
        limits = self.limits
        # Of files in blocks of 512 bytes, as POSIX has it.
        ulimit = _ULIMIT.format(blocks=limits.max_bytes // 512 + 1, threads=_THREADS * limits.max_processes)
        words = ["/bin/sh", "-c", ulimit, "sh", *command.words]
        if not addresses:
            yield [*shut_in, *end, *words]
            return
        with tempfile.TemporaryDirectory(prefix=_PREFIX) as made:
            door = Path(made, "door")
            # Isolated, so that nothing in the workspace or the home is imported; without `site` Python starts faster.
            starter = (_PYTHON, "-I", "-S", f"{_KEVAL}/inside.py", f"{_KEVAL}/door")
            async with leading_out(door, addresses):
                shut_in += ["--ro-bind", str(_INSIDE), f"{_KEVAL}/inside.py", "--bind", str(door), f"{_KEVAL}/door"]
                yield [*shut_in, *end, *starter, ",".join(map(str, addresses)), *words]

    def _installed(self, command: SandboxedCommand) -> list[str]:
        installation = Installation(command.env.get("PATH", os.defpath))
        certificates = [Path(command.env[name]) for name in _CERTIFICATES if name in command.env]
        for path in (Path(_PYTHON), *command.needs, *self.read, *certificates):
            # What the program writes it sees anyway, and it could put a link there that leads to what it may not see.
            if not any(Path(os.path.abspath(path)).is_relative_to(each) for each in command.writable) and path.exists():
                installation.add(path)
        in_memory = ("--size", str(self.limits.max_memory // _SHARE)) if _knows_sizes() else ()
        folders = (*in_memory, "--tmpfs", "/tmp", *in_memory, "--tmpfs", "/dev/shm", "--remount-ro", "/dev")  # noqa: S108
        return [*folders, *_system(), *installation.arguments()]


@cache
def _knows_sizes() -> bool:
    """Return whether this bubblewrap bounds what is in a folder in memory, as from 0.7 on."""
    told = subprocess.run(["bwrap", "--help"], capture_output=True, text=True, check=False)  # noqa: S607 - as is started
    return "--size" in told.stdout


def _system() -> Iterator[str]:
    for path in SYSTEM:
        if path.is_symlink():
            yield from ("--symlink", os.readlink(path), str(path))
        elif path.exists():
            yield from ("--ro-bind", str(path), str(path))
    for name in _SETTINGS:
        yield from ("--ro-bind-try", f"/etc/{name}", f"/etc/{name}")


@attrs.frozen
class BubblewrapOptions:
    """The sandbox `bubblewrap` with options, as a config has it."""

    bubblewrap: Bubblewrap


SYSTEM = (
    *map(Path, ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")),
    Path("/etc/alternatives"),  # by which Debian's programs lead to one another
)
"""The folders of the system's programs, which are in every sandbox."""


@attrs.define
class Installation:
    """The folders, files and symbolic links of programs, each where it is; `path` is the PATH of their environment.

    What is of the system is left out: it is in every sandbox.
    """

    path: str
    shown: set[Path] = attrs.field(factory=set, init=False)
    links: dict[Path, str] = attrs.field(factory=dict, init=False)

    def add(self, program: Path) -> None:
        """Add a program, or any other file or folder: links to it, what is around it, and what interprets it."""
        at = Path(os.path.abspath(program))
        while at not in self.links and at not in self.shown:
            around = [] if at.is_dir() else [*_around(at)]
            self.shown.update(around)
            if (python := _python(at)) is not None:
                self.add(python)
            if not at.is_symlink():
                if not around:
                    self.shown.add(at)
                break
            self.links[at] = os.readlink(at)
            at = Path(os.path.abspath(at.parent / self.links[at]))
        interpreter = _interpreter(at, self.path)
        if interpreter is not None:
            self.add(interpreter)

    def arguments(self) -> Iterator[str]:
        """Yield the options of `bwrap` that show all of it, read-only."""
        shown = [path for path in sorted(self.shown) if not _is_in(path, self.shown - {path})]
        for path in shown:
            if not _is_in(path, SYSTEM):
                yield from ("--ro-bind", str(path), str(path))
        for link, target in sorted(self.links.items()):
            if not _is_in(link, {*shown, *SYSTEM}):
                yield from ("--symlink", target, str(link))


def _around(program: Path) -> Iterator[Path]:
    """Yield the folders that a program needs whole: packages of npm, a virtual environment, a Python or a Node."""
    # A program of npm imports its neighbours in the same folder.
    if "node_modules" in program.parts:
        yield Path(*program.parts[: program.parts.index("node_modules") + 1])
    folder, prefix = program.parent, program.parent.parent
    if folder.name != "bin":
        return
    if (prefix / "pyvenv.cfg").is_file():
        yield prefix
    elif any(prefix.glob("lib/python3*")) or (prefix / "lib" / "node_modules").is_dir():
        yield from (folder, prefix / "lib")


def _python(program: Path) -> Path | None:
    """Return the Python that the virtual environment of a program is made of, if it is in one."""
    try:
        lines = (program.parent.parent / "pyvenv.cfg").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    settings = dict(line.split(" = ", 1) for line in lines if " = " in line)
    found = shutil.which("python3", path=settings.get("home"))
    return Path(found) if found else None


def _interpreter(script: Path, path: str) -> Path | None:
    """Return what the first line of a script names, `#!/usr/bin/env node` for example."""
    try:
        with script.open("rb") as file:
            # Linux reads no more of a first line (execve(2)).
            words = os.fsdecode(file.readline(256)).split() if file.read(2) == b"#!" else []
    except OSError:  # a folder, or one that nobody may read
        return None
    if words and os.path.basename(words[0]) == "env":
        named = next((word for word in words[1:] if not word.startswith("-") and "=" not in word), "")
        found = shutil.which(named, path=path)
        return Path(found) if found else None
    return Path(words[0]) if words else None


def _is_in(path: Path, folders: set[Path] | tuple[Path, ...]) -> bool:
    return any(path.is_relative_to(folder) for folder in folders)


_PIECE = 65_536
_MOST_AT_ONCE = 100
"""Connections out of a sandbox; each takes descriptors of keval's, of which other trials need some, too."""


class Address(NamedTuple):
    """A host and a port on loopback."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


def addresses_of(urls: Iterable[str]) -> list[Address]:
    """Return the addresses that URLs lead to, each once.

    Raises:
        TrialError: of kind `sandbox`; one is not on loopback.
    """
    found: dict[Address, None] = {}
    for url in urls:
        parts = urlsplit(url)
        host = "127.0.0.1" if parts.hostname == "localhost" else parts.hostname or ""
        if host not in ("127.0.0.1", "::1"):
            raise TrialError(
                f"the agent cannot reach {parts.hostname} from its sandbox, which has no way to other machines;"
                " leave `tap: false` away, so that keval connects to the server, or use another sandbox",
                kind="sandbox",
            )
        found[Address(host, parts.port or (443 if parts.scheme == "https" else 80))] = None
    return [*found]


@asynccontextmanager
async def leading_out(door: Path, addresses: Sequence[Address]) -> AsyncIterator[None]:
    """Open the Unix socket at which sockets that listen on these addresses arrive, and pass on what connects to them.

    Only the first who sends is heard: `inside.py`, before the program that it becomes.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        _bind(receiver, door)
        receiver.setblocking(False)
        passing = asyncio.create_task(_pass_on(receiver, addresses))
        try:
            yield
        finally:
            passing.cancel()
            await asyncio.wait({passing})


def _bind(receiver: socket.socket, door: Path) -> None:
    """Bind a Unix socket, whose own path may have only 107 bytes, at a path of any length."""
    folder = os.open(door.parent, os.O_RDONLY)
    try:
        receiver.bind(f"/proc/self/fd/{folder}/{door.name}")
    finally:
        os.close(folder)


async def _pass_on(receiver: socket.socket, addresses: Sequence[Address]) -> None:
    arrived = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(receiver, arrived.set)
    try:
        await arrived.wait()
    finally:
        loop.remove_reader(receiver)
    _, descriptors, _, _ = socket.recv_fds(receiver, 1, len(addresses))
    # Who comes later, such as the agent's program, could hand over sockets of its own.
    receiver.close()
    free = asyncio.Semaphore(_MOST_AT_ONCE)
    async with asyncio.TaskGroup() as group:
        for descriptor, address in zip(descriptors, addresses, strict=True):
            group.create_task(_accept(socket.socket(fileno=descriptor), address, group, free))


async def _accept(listener: socket.socket, address: Address, group: asyncio.TaskGroup, free: asyncio.Semaphore) -> None:
    with listener:
        listener.setblocking(False)
        while True:
            # Before it accepts: what is too much waits in the backlog of the listener, and takes no descriptor.
            await free.acquire()
            connection, _ = await asyncio.get_running_loop().sock_accept(listener)
            group.create_task(_join(connection, address)).add_done_callback(lambda _: free.release())


async def _join(connection: socket.socket, address: Address) -> None:
    """Pass on what comes from either side, as it comes, until both have ended; one that breaks off ends the other."""
    ends: list[asyncio.StreamWriter] = []
    try:
        inside, to_inside = await asyncio.open_connection(sock=connection)
        ends.append(to_inside)
        outside, to_outside = await asyncio.open_connection(*address)
        ends.append(to_outside)
        async with asyncio.TaskGroup() as group:
            group.create_task(_copy(inside, to_outside))
            group.create_task(_copy(outside, to_inside))
    except* OSError:  # nobody listens here, or a connection is broken: the program sees its own broken
        for writer in ends:
            writer.transport.abort()
    finally:
        for writer in ends:
            writer.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while piece := await reader.read(_PIECE):
        writer.write(piece)
        await writer.drain()
    # Only this direction has ended: the other side may still answer.
    writer.write_eof()
