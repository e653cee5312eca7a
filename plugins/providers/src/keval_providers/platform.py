"""Signing in: what is added to each request at the moment at which it is sent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import attrs

from keval.errors import ModelError
from keval.plugin import ModelRequest, PreflightError
from keval_clients.network import key_header
from keval_providers.tokens import Learn, RenewedToken

Signer: TypeAlias = Callable[[ModelRequest, str, str], Mapping[str, str]]
"""Returns the headers that sign a request, which is sent to the URL, by the token."""


def _same(request: ModelRequest) -> ModelRequest:
    return request


def _bearer(request: ModelRequest, url: str, token: str) -> Mapping[str, str]:
    return {"authorization": f"Bearer {token}"}


@attrs.frozen(eq=False)
class SignIn:
    """Implements `keval.records.models.Platform`, by whichever of these are given.

    A `key` is sent as the protocol sends one. The `signer` is given the request as it is sent, which `adapter` makes,
    and sends the `token` as a bearer token if nothing else is said. `headers` are constant, and go over both. `secrets`
    are what the redactor is told beside the token: pairs of a name and a value.
    """

    headers: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    key: str | None = attrs.field(default=None, repr=False)
    token: RenewedToken | None = None
    signer: Signer = _bearer
    secrets: tuple[tuple[str, str], ...] = attrs.field(default=(), repr=False)
    adapter: Callable[[ModelRequest], ModelRequest] = _same

    def adapt(self, request: ModelRequest) -> ModelRequest:
        """Return the request as the provider takes it."""
        return self.adapter(request)

    async def sign(self, request: ModelRequest, url: str) -> Mapping[str, str]:
        """Return the headers that sign a request in. Raises ModelError: a token cannot be had."""
        signed: dict[str, str] = {}
        if self.key is not None:
            signed.update(key_header(request.wire, self.key))
        if self.token is not None:
            signed.update(self.signer(request, url, await self.token.value()))
        signed.update(self.headers)
        return signed

    def tell_secrets(self, learn: Learn) -> None:
        """Tell `learn` each secret before a request is signed with it."""
        learn(self.secrets)
        if self.token is not None:
            self.token.tell_secrets(learn)


@attrs.frozen
class Login:
    """A way of signing in that was found: `how` says which, without a secret, such as `the key in OPENAI_API_KEY`.

    A `key` is sent as the protocol sends one, unless there is a `platform`. `place` is the project or the region for
    which it is, where the user named none.
    """

    how: str
    key: str = attrs.field(default="none", repr=False)
    platform: SignIn | None = None
    place: str | None = None

    def with_headers(self, headers: Mapping[str, str], secrets: tuple[tuple[str, str], ...]) -> Login:
        """Return the same way of signing in, with more headers."""
        before = self.platform or SignIn(key=self.key)
        after = attrs.evolve(before, headers={**before.headers, **headers}, secrets=(*before.secrets, *secrets))
        return attrs.evolve(self, platform=after)

    async def prepare(self) -> None:
        """Get the first token, so that what is wrong with it is told before a run begins. Raises PreflightError."""
        if self.platform is not None and self.platform.token is not None:
            try:
                await self.platform.token.value()
            except ModelError as error:
                raise PreflightError(str(error)) from error
