"""The ways out of a sandbox: keval accepts what its program connects to, and passes it on to the same address here."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from keval.errors import TrialError

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
    receiver.close()
    free = asyncio.Semaphore(_MOST_AT_ONCE)
    async with asyncio.TaskGroup() as group:
        for descriptor, address in zip(descriptors, addresses, strict=True):
            group.create_task(_accept(socket.socket(fileno=descriptor), address, group, free))


async def _accept(listener: socket.socket, address: Address, group: asyncio.TaskGroup, free: asyncio.Semaphore) -> None:
    with listener:
        listener.setblocking(False)
        while True:
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
    writer.write_eof()
