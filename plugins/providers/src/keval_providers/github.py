"""The identity that GitHub gives a job of Actions (OIDC), exchanged for a vendor's own token.

A way of signing in for jobs with `permissions: id-token: write`, where no other credential is set. Each vendor has to
trust the repository: that is set up at the vendor.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

import httpx2

from keval.errors import ModelError
from keval.plugin import ModelRequest
from keval_clients.network import Network
from keval_clients.printed_token import Token
from keval_providers.platform import Login, SignIn
from keval_providers.tokens import RenewedToken

if TYPE_CHECKING:
    from keval_providers.hosted import HostedProvider

_URL, _TOKEN = "ACTIONS_ID_TOKEN_REQUEST_URL", "ACTIONS_ID_TOKEN_REQUEST_TOKEN"
_TIMEOUT = 30.0
_OPENAI = "OPENAI_IDENTITY_PROVIDER_ID", "OPENAI_SERVICE_ACCOUNT_ID"
_ANTHROPIC = "ANTHROPIC_FEDERATION_RULE_ID", "ANTHROPIC_ORGANIZATION_ID"
_OAUTH = "oauth-2025-04-20"
"""The flag by which Anthropic's API takes a token in the place of a key."""


def identity(*variables: str, unless: tuple[str, ...] = ()) -> list[str] | None:
    """Return the values of a vendor's variables, if GitHub gives an identity and none of `unless` is set."""
    values = [os.environ.get(name, "") for name in (*variables, _URL, _TOKEN)]
    return values[: len(variables)] if all(values) and not any(map(os.environ.get, unless)) else None


def identity_token(audience: str, secrets: list[str]) -> str:
    """Return a token of GitHub's for an audience, and add it to `secrets`. It waits for GitHub: call it in a thread.

    Raises ModelError: GitHub gave none.
    """
    url, token = os.environ[_URL], os.environ[_TOKEN]
    secrets.append(token)
    with httpx2.Client(**Network.to(url).client, timeout=_TIMEOUT) as client:
        asked = httpx2.URL(url).copy_add_param("audience", audience)
        reply = client.get(asked, headers={"authorization": f"bearer {token}"})
    found = reply.json().get("value") if reply.is_success else None
    if not found:
        raise ModelError(f"GitHub gave no identity: HTTP {reply.status_code}")
    secrets.append(found)
    return str(found)


def exchanged(vendor: str, secrets: list[str], exchange: Callable[[], Token]) -> RenewedToken:
    """Return a vendor's token, for which `exchange` waits."""
    remedy = f"check that {vendor} trusts this repository, and the job's `permissions: id-token: write`"
    return RenewedToken(f"{vendor} for GitHub's identity", remedy, partial(asyncio.to_thread, exchange), secrets)


async def openai(provider: HostedProvider) -> Login | None:
    """Sign in to OpenAI by its workload identity federation."""
    if (found := identity(*_OPENAI)) is None:
        return None
    from openai.auth import WorkloadIdentityAuth  # half a second

    secrets: list[str] = []
    asked = partial(identity_token, "https://api.openai.com/v1", secrets)
    auth = WorkloadIdentityAuth(
        workload_identity={
            "identity_provider_id": found[0],
            "service_account_id": found[1],
            "provider": {"token_type": "jwt", "get_token": asked},
        }
    )
    token = exchanged("OpenAI", secrets, lambda: Token(auth.get_token()))
    return Login("GitHub's identity, by OpenAI's workload identity federation", platform=SignIn(token=token))


async def anthropic(provider: HostedProvider) -> Login | None:
    """Sign in to Anthropic by its workload identity federation."""
    if (found := identity(*_ANTHROPIC)) is None:
        return None
    from anthropic import WorkloadIdentityCredentials  # more than a second

    secrets: list[str] = []

    def exchange() -> Token:
        with WorkloadIdentityCredentials(
            identity_token_provider=partial(identity_token, "https://api.anthropic.com", secrets),
            federation_rule_id=found[0],
            organization_id=found[1],
            service_account_id=os.environ.get("ANTHROPIC_SERVICE_ACCOUNT_ID"),
            workspace_id=os.environ.get("ANTHROPIC_WORKSPACE_ID"),
        ) as credentials:
            credentials.bind_base_url(provider.urls["anthropic"])
            token = credentials()
        return Token(token.token, token.expires_at)

    platform = SignIn(token=exchanged("Anthropic", secrets, exchange), signer=_by_oauth)
    return Login("GitHub's identity, by Anthropic's workload identity federation", platform=platform)


def _by_oauth(request: ModelRequest, url: str, token: str) -> Mapping[str, str]:
    flags = request.headers.get("anthropic-beta", "")
    return {
        "authorization": f"Bearer {token}",
        "anthropic-beta": f"{flags},{_OAUTH}" if flags else _OAUTH,
    }
