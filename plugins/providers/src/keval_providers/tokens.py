"""Tokens: what a provider is signed in to with for a while, renewed during a run."""

from __future__ import annotations

import asyncio
import math
import shlex
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial

import attrs

from keval.errors import ModelError
from keval.redaction import Redactor
from keval_clients.printed_token import Token, printed_token
from keval_clients.replies import quoted, what_failed

_MARGIN = 300.0
"""Seconds before its end at which a token is renewed; a fifth of its life, if that is shorter."""
_UNKNOWN_LIFE = 300.0
"""Seconds after which a token without an end is asked for again."""
_PAUSE = 30.0
"""Seconds from a renewal that failed to the next, while the old token is still good."""
_COMMAND_SECONDS = 60.0
"""Seconds that a command may take: one that asks the user something would never end."""

Learn = Callable[[Iterable[tuple[str, str]]], None]
"""Takes secrets, pairs of a name and a value, which are redacted from then on."""


@attrs.define(eq=False)
class RenewedToken:
    """Keeps one token for a run, and renews it before its end.

    `source` names what gives it, such as `azure-identity`; `remedy` says what a user does when that fails. `fetch` gets
    a new one: a library that blocks is called in a thread, as by `partial(asyncio.to_thread, function)`. `secrets` are
    what it sends for that, to which it may add; no message has them.
    """

    source: str
    remedy: str
    fetch: Callable[[], Awaitable[Token]] = attrs.field(repr=False)
    secrets: list[str] = attrs.field(factory=list, repr=False)
    _learn: Learn | None = attrs.field(default=None, init=False)
    _token: Token | None = attrs.field(default=None, init=False)
    _due: float = attrs.field(default=0.0, init=False)
    _failed: tuple[float, str] = attrs.field(default=(-1.0, ""), init=False)
    _lock: asyncio.Lock = attrs.field(factory=asyncio.Lock, init=False, repr=False)

    def tell_secrets(self, learn: Learn) -> None:
        """Tell `learn` the token that there is, and each new one before it is used."""
        self._learn = learn
        self._tell()

    async def value(self) -> str:
        """Return the token, renewed if that is due. While one request renews it, others use it as long as it is good.

        Raises ModelError: it cannot be had.
        """
        asked = time.time()
        if asked >= self._due and not (self._lock.locked() and self._is_good()):
            async with self._lock:
                if self._failed[0] >= asked:  # while this request waited
                    raise ModelError(self._failed[1], status=401)
                if time.time() >= self._due:
                    await self._renew()
        assert self._token is not None  # noqa: S101 - for mypy: it is due until there is one
        return self._token.value

    def _is_good(self) -> bool:
        return self._token is not None and (self._token.expires is None or time.time() < self._token.expires)

    async def _renew(self) -> None:
        try:
            token = await self.fetch()
            life = _UNKNOWN_LIFE if token.expires is None else token.expires - time.time()
            if life <= 0:
                raise ModelError("the token that it gave has ended already")
        except Exception as error:
            now = time.time()
            if self._token is not None and self._is_good():
                self._due = min(now + _PAUSE, self._token.expires or math.inf)
                return
            redactor = Redactor()  # before a run begins, there is no other
            redactor.learn((self.source, secret) for secret in self.secrets)
            said = quoted(redactor.text(what_failed(error)))
            told = f"no token to sign in with: {self.source}: {said}; {self.remedy}"
            self._failed = now, told
            raise ModelError(told, status=401) from error
        self._token, self._due = token, time.time() + life - min(_MARGIN, life / 5)
        self._tell()

    def _tell(self) -> None:
        if self._learn is not None and self._token is not None:
            self._learn((f"the token of {self.source}", part) for part in (*self._token.value.split(), *self.secrets))


def command_token(command: Sequence[str]) -> RenewedToken:
    """Return the token that a command prints, which is run again before the token ends."""
    remedy = "run it in a terminal to see what it says"
    return RenewedToken(
        f"the command `{shlex.join(command)}`", remedy, partial(printed_token, command, _COMMAND_SECONDS)
    )
