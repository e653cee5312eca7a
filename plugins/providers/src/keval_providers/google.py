"""Google's tokens: application default credentials, and GitHub's identity by workload identity federation."""

from __future__ import annotations

import asyncio
import os
from datetime import UTC
from functools import partial
from typing import TYPE_CHECKING, Any

import google.auth
import requests
from google.auth import identity_pool
from google.auth.exceptions import DefaultCredentialsError, GoogleAuthError
from google.auth.transport.requests import Request

from keval.errors import ModelError
from keval.plugin import PreflightError
from keval_clients.printed_token import Token
from keval_providers.github import exchanged, identity, identity_token
from keval_providers.platform import Login, SignIn
from keval_providers.tokens import RenewedToken

if TYPE_CHECKING:
    from keval_providers.hosted import HostedProvider

_FILE = "GOOGLE_APPLICATION_CREDENTIALS"
_SCOPES = ["https://www.googleapis.com/auth/cloud-platform"]
_EXCHANGE = "https://sts.googleapis.com/v1/token"
_IMPERSONATE = "https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/{}:generateAccessToken"
_SECRETS = ("refresh_token", "client_secret")
"""What a user's credentials send to get a token."""


class _GitHub(identity_pool.SubjectTokenSupplier):
    def __init__(self, pool: str, secrets: list[str]) -> None:
        self._token = partial(identity_token, f"https://iam.googleapis.com/{pool}", secrets)

    def get_subject_token(self, context: object, request: object) -> str:
        return self._token()


async def from_github(provider: HostedProvider) -> Login | None:
    """Sign in by a pool of identities, and as a service account if one is named."""
    if (found := identity("GOOGLE_WORKLOAD_IDENTITY_PROVIDER", unless=(_FILE,))) is None:
        return None
    (pool,), account, secrets = found, os.environ.get("GOOGLE_SERVICE_ACCOUNT"), list[str]()
    credentials = identity_pool.Credentials(  # type: ignore[no-untyped-call]  # of google-auth
        audience=f"//iam.googleapis.com/{pool}",
        subject_token_type="urn:ietf:params:oauth:token-type:jwt",  # noqa: S106 - the name of a type
        token_url=_EXCHANGE,
        subject_token_supplier=_GitHub(pool, secrets),
        service_account_impersonation_url=account and _IMPERSONATE.format(account),
        scopes=_SCOPES,
    )
    token = exchanged("Google", secrets, partial(_refreshed, credentials))
    return Login("GitHub's identity, by Google's workload identity federation", platform=SignIn(token=token))


async def application_default(provider: HostedProvider) -> Login | None:
    """Sign in by application default credentials: a file, those of `gcloud`, or the machine's service account."""
    try:
        credentials, project = await asyncio.to_thread(google.auth.default, scopes=_SCOPES)
    except DefaultCredentialsError as error:
        if os.environ.get(_FILE):
            raise PreflightError(f"{_FILE} cannot be used: {error}; correct the variable, or unset it") from error
        return None
    remedy = f"run `gcloud auth application-default login`, or correct what {_FILE} names"
    secrets = [value for name in _SECRETS if (value := getattr(credentials, name, None))]
    fetch = partial(asyncio.to_thread, _refreshed, credentials)
    paying = getattr(credentials, "quota_project_id", None)
    platform = SignIn(
        {"x-goog-user-project": paying} if paying else {},
        token=RenewedToken("Google's application default credentials", remedy, fetch, secrets),
    )
    return Login("Google's application default credentials", platform=platform, place=project)


def _refreshed(credentials: Any) -> Token:
    try:
        with requests.Session() as session:
            session.verify = os.environ.get("SSL_CERT_FILE") or True
            credentials.refresh(Request(session))
    except GoogleAuthError as error:  # whose second argument is the whole reply
        raise ModelError(str(error.args[0] if error.args else error)) from error
    end = credentials.expiry
    return Token(credentials.token, end and end.replace(tzinfo=UTC).timestamp())
