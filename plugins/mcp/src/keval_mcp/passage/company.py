"""Which trials' calls a server was working on when it was lost."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import attrs

from keval.plugin import ServerLostError
from keval_mcp.server.upstream import CallLostError, CallTimeoutError

__all__ = ["Company", "Place"]


@attrs.define(eq=False)
class Company:
    """The attempts that use one server at the same time.

    Nobody can tell which of several calls made a server fail. So an attempt has lost its server to its own call only if
    no other attempt's call was unanswered then, and no other attempt had lost the server since this one came.
    """

    _losses: int = attrs.field(default=0, init=False)
    _under_way: set[_Call] = attrs.field(factory=set, init=False)

    def join(self) -> Place:
        """Return the place of an attempt that begins to use the server."""
        return Place(self, self._losses)


@attrs.define(eq=False)
class Place:
    """One attempt's place among those that use a server."""

    _company: Company
    _losses: int
    """How many losses of the company are no news to this attempt."""
    _bystander: bool = attrs.field(default=False, init=False)

    @property
    def bystander(self) -> bool:
        """Whether another attempt's call may be why this attempt has just lost the server."""
        return self._bystander or self._company._losses > self._losses or bool(self._others())

    @contextmanager
    def calling(self) -> Iterator[None]:
        """Count a call of this attempt as under way until it is answered, or for good if it loses the server."""
        call = _Call(self, self._others())
        for other in call.beside:
            other.beside.add(call)
        self._company._under_way.add(call)
        answered = True
        try:
            yield
        except (CallLostError, CallTimeoutError):
            answered = False
            raise
        except ServerLostError:
            answered = False
            self._bystander = bool(call.beside) or self.bystander
            self._company._losses += 1
            self._losses += 1
            raise
        except BaseException as error:
            answered = isinstance(error, Exception)  # an attempt that ended left its call with the server
            raise
        finally:
            self._company._under_way.discard(call)
            if answered:
                for other in call.beside:
                    other.beside.discard(call)

    def _others(self) -> set[_Call]:
        return {call for call in self._company._under_way if call.of is not self}


@attrs.define(eq=False)
class _Call:
    of: Place
    beside: set[_Call]
    """The calls of others that were under way at the same time and have not been answered."""
