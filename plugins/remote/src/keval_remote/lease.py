"""The lease of a run: an object that says which process on which machine writes to it, and until when.

The holder writes it again before its time is over. A lease that was not renewed is taken over by making the next one:
its name has a number, and an object is made only if there is none, so of two who take over at once one succeeds.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import socket
import threading
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any

import attrs

from keval import RunError
from keval_remote.objects import Objects, UnreachableError

_SETTLING = 2.0
"""Seconds after which two who made a lease at once, where that can succeed twice, see whose it is."""
_PAUSE = 0.2
_BEATS = 3
"""How often a lease is renewed in its time."""


class HeldError(RunError):
    """Another process has the lease."""


@attrs.frozen
class Holder:
    """Who holds a lease: a process on a machine, until a Unix time."""

    token: str
    host: str
    pid: int
    until: float

    @classmethod
    def read(cls, content: bytes) -> Holder:
        """Read a lease; one that cannot be read was not written to its end."""
        try:
            found: dict[str, Any] = json.loads(content)
            return cls(str(found["token"]), str(found["host"]), int(found["pid"]), float(found["until"]))
        except (ValueError, LookupError, TypeError):
            return cls("", "unknown", 0, 0.0)

    @property
    def told(self) -> str:
        """The holder, for people."""
        return f"process {self.pid} on {self.host}, until {datetime.fromtimestamp(self.until):%Y-%m-%d %H:%M:%S}"


@attrs.define(eq=False)
class Lease:
    """A lease that is held. `lost_to` says who holds it in its place, as soon as that is known."""

    _objects: Objects
    _name: str
    _number: int
    _seconds: float
    token: str
    lost_to: str | None = attrs.field(default=None, init=False)
    taken_from: Holder | None = None
    _valid: float = attrs.field(default=0.0, init=False)
    _stopped: threading.Event = attrs.field(factory=threading.Event, init=False)
    _renewing: threading.Lock = attrs.field(factory=threading.Lock, init=False)

    @classmethod
    def acquire(
        cls, objects: Objects, name: str, seconds: float, own: str | None = None, patience: float = 0.0
    ) -> Lease:
        """Take a lease, `own` being the token of one that this machine did not release.

        Waits as long as `patience` says for one that is held, and a while for one whose time is over, as the clocks of
        two machines differ. Raises HeldError, and UnreachableError.
        """
        until = time.monotonic() + patience
        while True:
            try:
                return cls._acquire(objects, name, seconds, own)
            except HeldError:
                if time.monotonic() > until:
                    raise
                time.sleep(_PAUSE)

    @classmethod
    def _acquire(cls, objects: Objects, name: str, seconds: float, own: str | None) -> Lease:
        found = newest(objects, name)
        number, taken_from = 0, None
        if found is not None:
            number, holder = found
            if holder.token == own and own is not None:
                lease = cls(objects, name, number, seconds, own)
                lease.renew()
                return lease
            if own is None and holder.until < time.time():
                # A holder whose clock is behind is alive, and renews its lease within this time.
                time.sleep(seconds / _BEATS)
                if newest(objects, name) == found:
                    number, taken_from = number + 1, holder
        if own is not None:
            raise HeldError(f"another machine went on with {objects.url} since this one wrote to it last")
        if found is not None and taken_from is None:
            raise HeldError(f"{objects.url} is being written by {found[1].told}; wait for it to end, or until then")
        lease = cls(objects, name, number, seconds, secrets.token_hex(8), taken_from=taken_from)
        lease._valid = time.monotonic() + seconds
        try:
            is_sure = objects.create(lease._path, lease._content())
        except FileExistsError as error:
            raise HeldError(f"{objects.url} is being written by another process since a moment ago") from error
        # Both may have made the object; who wrote it last holds the lease, and `renew` finds out who that is.
        if not is_sure:
            time.sleep(_SETTLING)
            lease.renew()
        if lease.lost_to is not None:
            raise HeldError(f"{objects.url} is being written by {lease.lost_to}")
        if taken_from is not None:
            objects.remove([f"{name}.{older}" for older in _numbers(objects, name) if older < number])
        return lease

    def keep(self, lost: Callable[[], object]) -> None:
        """Renew the lease in a thread until it is released, or `lost`."""

        def renew() -> None:
            while self.lost_to is None and not self._stopped.wait(self._seconds / _BEATS):
                try:
                    self.renew()
                except UnreachableError:
                    continue  # what is uploaded tells of it
            if self.lost_to is not None and not self._stopped.is_set():
                lost()

        threading.Thread(target=renew, name="keval lease", daemon=True).start()

    def assure(self) -> bool:
        """Return whether the lease is held; renew it first if its time is over. Raises UnreachableError."""
        if self.lost_to is None and time.monotonic() > self._valid:
            self.renew()
        return self.lost_to is None and not self._stopped.is_set()

    def renew(self) -> None:
        """Write the lease again, unless it was lost. Raises UnreachableError."""
        with self._renewing:
            if self._stopped.is_set():
                return
            began = time.monotonic()
            found = newest(self._objects, self._name)
            if found is None or found[1].token != self.token:
                self.lost_to = found[1].told if found else "another process, which has ended"
                return
            self._objects.write(self._path, self._content())
            # Counted from before the request, as others may have read the lease since then.
            self._valid = began + self._seconds

    def stop(self) -> None:
        """Renew the lease no more; others take it over when its time is over."""
        self._stopped.set()

    def release(self) -> None:
        """Give the lease back. Raises UnreachableError."""
        self.stop()
        # A renewal that is under way would write the lease once more after it was removed.
        with self._renewing:
            if self.lost_to is None:
                self._objects.remove([self._path])

    @property
    def _path(self) -> str:
        return f"{self._name}.{self._number}"

    def _content(self) -> bytes:
        until = time.time() + self._seconds
        told = {"token": self.token, "host": socket.gethostname(), "pid": os.getpid(), "until": round(until, 3)}
        return json.dumps(told).encode()


def newest(objects: Objects, name: str) -> tuple[int, Holder] | None:
    """Return the lease of a run that counts: its number and who holds it; `None` without one."""
    for number in reversed(_numbers(objects, name)):
        try:
            return number, Holder.read(objects.read(f"{name}.{number}"))
        except FileNotFoundError:
            continue  # it was released since
    return None


def _numbers(objects: Objects, name: str) -> list[int]:
    """Return the numbers of all leases, those included that were taken over by someone who was killed then."""
    return sorted(
        int(found[1]) for each in objects.list() if (found := re.fullmatch(rf"{re.escape(name)}\.(\d+)", each))
    )
