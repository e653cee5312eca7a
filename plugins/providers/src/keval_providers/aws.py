"""AWS's credentials, by botocore's own chain, and the signatures that are made with them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import AssumeRoleWithWebIdentityCredentialFetcher, Credentials, DeferredRefreshableCredentials
from botocore.exceptions import BotoCoreError
from botocore.session import Session

from keval.plugin import ModelRequest, PreflightError
from keval_clients.printed_token import Token
from keval_providers.clouds import aws_region
from keval_providers.github import exchanged, identity, identity_token
from keval_providers.platform import Login, SignIn
from keval_providers.tokens import RenewedToken

if TYPE_CHECKING:
    from keval_providers.hosted import HostedProvider

_SERVICE = "bedrock-mantle"
_OTHERS = ("AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE")


async def from_github(provider: HostedProvider) -> Login | None:
    """Sign in by a role that GitHub's identity may assume."""
    if (found := identity("AWS_ROLE_ARN", unless=_OTHERS)) is None:
        return None
    session, secrets, name = _session(), list[str](), os.environ.get("AWS_ROLE_SESSION_NAME") or "keval"
    fetcher = AssumeRoleWithWebIdentityCredentialFetcher(
        session.create_client,
        partial(identity_token, "sts.amazonaws.com", secrets),
        found[0],
        {"RoleSessionName": name},
    )
    credentials = DeferredRefreshableCredentials(fetcher.fetch_credentials, "assume-role-with-web-identity")
    token = exchanged("AWS", secrets, partial(_frozen, credentials))
    return _login("GitHub's identity, by the role in AWS_ROLE_ARN", token, session)


async def default_chain(provider: HostedProvider) -> Login | None:
    """Sign in by what botocore finds: keys, a profile, a role, SSO, or the machine's role."""
    try:
        session = _session()
        credentials = await asyncio.to_thread(session.get_credentials)
    except BotoCoreError as error:
        raise PreflightError(f"AWS's credentials cannot be used: {error}; correct AWS_PROFILE or ~/.aws") from error
    if credentials is None:
        return None
    how = f"AWS's credentials ({credentials.method})"
    remedy = "run `aws sts get-caller-identity` to see what is wrong; `aws sso login` renews a session of SSO"
    return _login(how, RenewedToken(how, remedy, partial(asyncio.to_thread, _frozen, credentials)), session)


def _session() -> Session:
    """Return a session in the region that the environment names, of whose variables botocore knows one."""
    session = Session()
    if region := aws_region():
        session.set_config_variable("region", region)
    return session


def _login(how: str, token: RenewedToken, session: Session) -> Login:
    region = session.get_config_variable("region")
    return Login(how, platform=SignIn(token=token, signer=partial(_signed, region)), place=region)


def _frozen(credentials: Any) -> Token:
    """Return the credentials of now, which botocore renews from 15 minutes before their end, if they have one."""
    found = credentials.get_frozen_credentials()
    return Token(" ".join(filter(None, (found.access_key, found.secret_key, found.token))))


def _signed(region: str | None, request: ModelRequest, url: str, token: str) -> Mapping[str, str]:
    """Sign the bytes and the URL of a request (AWS Signature Version 4)."""
    headers = {
        "content-type": request.headers.get("content-type", "application/json"),
        "x-amz-content-sha256": sha256(request.body).hexdigest(),
    }
    signed = AWSRequest(request.method, url, headers, request.body)
    SigV4Auth(Credentials(*token.split()), _SERVICE, region).add_auth(signed)
    return {name.lower(): value for name, value in signed.headers.items()}
