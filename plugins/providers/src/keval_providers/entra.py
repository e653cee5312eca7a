"""Signing in to Azure as `azure-identity` finds a way: the environment, a managed identity, `az login` and others."""

from __future__ import annotations

import asyncio
import logging
import os
from functools import partial

import attrs
from azure.core.exceptions import ClientAuthenticationError
from azure.identity import ClientAssertionCredential, DefaultAzureCredential

from keval.errors import ModelError
from keval_clients.printed_token import Token
from keval_providers.github import exchanged, identity, identity_token
from keval_providers.hosted import HostedProvider
from keval_providers.platform import Login, SignIn
from keval_providers.tokens import RenewedToken

_SCOPES = {
    "azure": "https://cognitiveservices.azure.com/.default",
    "azure_ai": "https://ai.azure.com/.default",
}
"""What the models of a provider want a token for."""
_SECRETS = ("AZURE_CLIENT_SECRET", "AZURE_CLIENT_CERTIFICATE_PASSWORD", "AZURE_PASSWORD", "IDENTITY_HEADER")
"""Variables with what the library sends."""

# What it logs is in the error, too. Without a handler, Python would print it.
logging.getLogger("azure").addHandler(logging.NullHandler())


@attrs.define
class _Chain:
    """The chain of ways that Microsoft documents as DefaultAzureCredential, and which of them gave the last token."""

    scope: str
    found: str = ""

    def token(self) -> Token:
        """Get a token, which may ask a server or a program. Raises ModelError: no way leads to one."""
        # Closed each time, as connections do not outlast a token.
        with DefaultAzureCredential(disable_instance_discovery=_has_own_authority()) as credential:
            try:
                token = credential.get_token(self.scope)
            except ClientAuthenticationError as error:
                # A line for each way that was tried, of which the first sentence tells what is missing.
                tried = [line.strip().partition(". ")[0] for line in error.message.splitlines() if line[:1] == "\t"]
                raise ModelError("; ".join(tried) or error.message) from error
            self.found = type(getattr(credential, "_successful_credential", credential)).__name__
        return Token(token.token, token.expires_on)


async def from_github(provider: HostedProvider) -> Login | None:
    """Sign in as an application that trusts GitHub's identity."""
    others = (*_SECRETS, "AZURE_CLIENT_CERTIFICATE_PATH", "AZURE_FEDERATED_TOKEN_FILE")
    if (found := identity("AZURE_TENANT_ID", "AZURE_CLIENT_ID", unless=others)) is None:
        return None
    secrets: list[str] = []
    assertion = partial(identity_token, "api://AzureADTokenExchange", secrets)

    def exchange() -> Token:
        own = _has_own_authority()
        with ClientAssertionCredential(found[0], found[1], assertion, disable_instance_discovery=own) as credential:
            token = credential.get_token(_scope(provider))
        return Token(token.token, token.expires_on)

    platform = SignIn(token=exchanged("Microsoft Entra ID", secrets, exchange))
    return Login("GitHub's identity, by Microsoft Entra ID", platform=platform)


def _scope(provider: HostedProvider) -> str:
    return os.environ.get("AZURE_SCOPE") or _SCOPES[provider.vendor]


def _has_own_authority() -> bool:
    """Return whether the user names another authority, and so trusts it: the public one does not know it."""
    return bool(os.environ.get("AZURE_AUTHORITY_HOST"))


async def sign_in(provider: HostedProvider) -> Login:
    """Return what signs in with a token of Microsoft Entra ID. Raises PreflightError: there is no way to one."""
    chain = _Chain(_scope(provider))
    remedy = f"sign in, as with `az login`, or export {provider.key_variables[0]}"
    secrets = [value for name in _SECRETS if (value := os.environ.get(name))]
    token = RenewedToken("azure-identity", remedy, partial(asyncio.to_thread, chain.token), secrets)
    login = Login("azure-identity", platform=SignIn(token=token))
    await login.prepare()
    return attrs.evolve(login, how=f"azure-identity: {chain.found}")
