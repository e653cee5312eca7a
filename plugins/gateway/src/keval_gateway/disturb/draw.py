"""The draw: which fault hits a request, the same one in every run and whatever else is asked at the same time."""

from __future__ import annotations

from collections import Counter
from hashlib import blake2b

import attrs

from keval_gateway.disturb.faults import Fault, Faults

__all__ = ["Draw"]

_MOST_REMEMBERED = 200_000
"""Requests whose number is known, some 30 MB. The one that was made longest ago is forgotten first."""


@attrs.define(eq=False)
class Draw:
    """Draws a fault for each request, and counts in `made` how often each was drawn.

    The draw depends on the seed, on the request, and on how often that request has been made. So a request that is
    repeated meets a fault of its own, and which request comes first makes no difference.
    """

    faults: Faults
    made: Counter[str] = attrs.field(factory=Counter, init=False)
    _times: dict[bytes, int] = attrs.field(factory=dict, init=False, repr=False)

    def fault(self, request: bytes) -> Fault | None:
        """Return the fault that hits a request, which is known by these bytes, or `None`."""
        identity = blake2b(request, digest_size=16).digest()
        times = self._times[identity] = self._times.pop(identity, 0) + 1
        if len(self._times) > _MOST_REMEMBERED:
            del self._times[next(iter(self._times))]
        drawn = blake2b(identity + f"{self.faults.seed}/{times}".encode(), digest_size=8).digest()
        point = int.from_bytes(drawn) / 2**64
        for fault in self.faults.faults:
            point -= fault.probability
            if point < 0:
                self.made[str(fault)] += 1
                return fault
        return None

    def told(self) -> str:
        """Say how many faults were made, and which."""
        each = ", ".join(f"{count:,} × {fault}" for fault, count in sorted(self.made.items()))
        return f"faults made: {self.made.total():,}{f' ({each})' if each else ''}"
