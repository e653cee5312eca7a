"""Clouds on loopback: what gives tokens, and models that want them, with keval's own gateway behind."""

from __future__ import annotations

import base64
import json
import re
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import attrs
import httpx
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from keval_gateway import Respond
from keval_gateway.app import build_app

__all__ = ["Cloud", "Sent", "asking", "google_user", "signature_problem"]

SECRETS = {
    "GOOGLE_REFRESH": "1//c4n4ry-refresh+~",
    "GOOGLE_CLIENT": "c4n4ry-client-secret+~",
    "AWS_SECRET_ACCESS_KEY": "c4n4ry/aws/key+~=",
    "SSO": "c4n4ry-sso-token+~",
    "ACTIONS_ID_TOKEN_REQUEST_TOKEN": "c4n4ry-request-token+~",
}
"""What is sent to get a token; the tokens themselves are those that a `Cloud` has issued."""


@attrs.frozen
class Sent:
    """A request as it arrived; `target` is the path with the query, as it was sent."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def content(self) -> Any:
        return json.loads(self.body)


@attrs.define
class Cloud:
    """What gives tokens, and models that want the last of them, or the `key`.

    A token has ended when it was used once, by the clock `time`. `issued` has what was given, in order. Where it
    `refuses`, it says what it was sent.
    """

    respond: Respond
    refuses: bool = False
    key: str | None = None
    sent: list[Sent] = attrs.field(factory=list, init=False)
    issued: list[str] = attrs.field(factory=list, init=False)
    between: set[str] = attrs.field(factory=set, init=False)
    asked: list[Sent] = attrs.field(factory=list, init=False)
    """The requests for tokens."""

    def app(self) -> Starlette:
        ask = asking(self.respond)

        async def answer(request: Request) -> Response:
            query = f"?{request.url.query}" if request.url.query else ""
            target = request.scope["raw_path"].decode() + query
            sent = Sent(request.method, target, dict(request.headers), await request.body())
            for path, given in _GIVEN.items():
                if re.match(path, target):
                    self.asked.append(sent)
                    if self.refuses:
                        body = sent.body.decode()
                        told = f"{sent.target} {sent.headers} {body} {dict(parse_qsl(body))}"
                        return _json({"error": "invalid_grant", "error_description": told}, 400)
                    return given(self, sent)
            self.sent.append(sent)
            if problem := self._problem(sent):
                return _json({"error": {"message": problem, "code": 401}}, 401)
            return await ask(*_plain(sent))

        return Starlette(routes=[Route("/{path:path}", answer, methods=["GET", "POST"])])

    def issue(self, kind: str) -> str:
        """Return a new token. No part of one is a part of another."""
        self.issued.append(f"c4n4ry-{kind}-{len(self.issued)}+~")
        return self.issued[-1]

    @property
    def life(self) -> int:
        """The seconds from now, by the machine's clock, in which a new token ends."""
        return 3600 * (len(self.sent) + 1)

    def time(self) -> float:
        return time.time() + 3600 * len(self.sent)

    def ends(self, life: int) -> str:
        return datetime.fromtimestamp(time.time() + life, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def _problem(self, sent: Sent) -> str | None:
        signed = sent.headers.get("authorization", "")
        if signed.startswith("AWS4-"):
            session = sent.headers.get("x-amz-security-token")
            is_last = session is not None and session == (self.issued or [""])[-1]
            secret = self.issued[-2] if is_last else SECRETS["AWS_SECRET_ACCESS_KEY"]
            return signature_problem(sent, secret, "bedrock-mantle", session)
        token = self.issued[-1] if self.issued else self.key
        keys = (signed.removeprefix("Bearer "), sent.headers.get("api-key"))
        return None if token in keys else f"no token of this stand-in's: {keys}"


def signature_problem(sent: Sent, secret: str, service: str, session: str | None = None) -> str | None:
    """Return what is wrong with the signature of a request (AWS Signature Version 4), by botocore."""
    given = re.fullmatch(
        r"AWS4-HMAC-SHA256 Credential=(?P<id>[^/]+)/\d{8}/(?P<region>[^/]+)/(?P<service>[^/]+)/aws4_request,"
        r" SignedHeaders=(?P<headers>[^,]+), Signature=(?P<signature>[0-9a-f]{64})",
        sent.headers.get("authorization", ""),
    )
    if given is None or given["service"] != service:
        return f"no signature for {service}: {sent.headers.get('authorization')}"
    content = sha256(sent.body).hexdigest()
    if sent.headers.get("x-amz-content-sha256", content) != content:
        return "the body is not the one that was signed"
    signer = SigV4Auth(Credentials(given["id"], secret, session), service, given["region"])
    request = AWSRequest(
        method=sent.method,
        url=f"http://{sent.headers['host']}{sent.target}",
        headers={name: sent.headers[name] for name in given["headers"].split(";")},
        data=sent.body,
    )
    request.context["timestamp"] = sent.headers["x-amz-date"]
    wanted = signer.signature(signer.string_to_sign(request, signer.canonical_request(request)), request)
    return None if wanted == given["signature"] else "the signature does not fit the request"


def google_user(folder: Path) -> str:
    """Write what `gcloud auth application-default login` writes, and return the path."""
    user = {
        "type": "authorized_user",
        "client_id": "a-client",
        "client_secret": SECRETS["GOOGLE_CLIENT"],
        "refresh_token": SECRETS["GOOGLE_REFRESH"],
        "quota_project_id": "paying-project",
    }
    path = folder / "adc.json"
    path.write_text(json.dumps(user), encoding="utf-8")
    return str(path)


def identity(audience: str, token: str) -> str:
    """Return what GitHub's tokens look like (a JSON Web Token, not signed)."""
    parts = ({"alg": "RS256"}, {"aud": audience, "sub": "repo:my/evals", "jti": token, "exp": time.time() + 300})
    encoded = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts]
    return f"{'.'.join(encoded)}.c2lnbmF0dXJl"


def _google(cloud: Cloud, sent: Sent) -> Response:
    token = {"access_token": cloud.issue("google"), "expires_in": cloud.life, "token_type": "Bearer"}
    return _json({**token, "issued_token_type": "urn:ietf:params:oauth:token-type:access_token"})


def _impersonated(cloud: Cloud, sent: Sent) -> Response:
    between = sent.headers["authorization"].removeprefix("Bearer ")
    if between in cloud.issued:  # google-auth may use it twice; only Google sees it
        cloud.issued.remove(between)
        cloud.between.add(between)
    assert between in cloud.between
    return _json({"accessToken": cloud.issue("account"), "expireTime": cloud.ends(cloud.life)})


def _github(cloud: Cloud, sent: Sent) -> Response:
    if sent.headers["authorization"] != f"bearer {SECRETS['ACTIONS_ID_TOKEN_REQUEST_TOKEN']}":
        return _json({}, 401)
    audience = dict(parse_qsl(sent.target.partition("?")[2]))["audience"]
    cloud.issued.append(identity(audience, str(len(cloud.issued))))
    return _json({"value": cloud.issued[-1]})


def _sts(cloud: Cloud, sent: Sent) -> Response:
    # botocore, which goes by the machine's clock, renews what ends so soon whenever it is asked.
    action = dict(parse_qsl(sent.body.decode()))["Action"]
    secret, session = cloud.issue("secret"), cloud.issue("session")
    return Response(
        f'<{action}Response xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><{action}Result><Credentials>'
        f"<AccessKeyId>ASIAOFTHESTANDIN</AccessKeyId><SecretAccessKey>{secret}</SecretAccessKey>"
        f"<SessionToken>{session}</SessionToken><Expiration>{cloud.ends(300)}</Expiration></Credentials>"
        f"<AssumedRoleUser><Arn>arn:aws:sts::123456789012:assumed-role/evals/keval</Arn></AssumedRoleUser>"
        f"</{action}Result></{action}Response>",
        media_type="text/xml",
    )


def _sso(cloud: Cloud, sent: Sent) -> Response:
    if sent.headers["x-amz-sso_bearer_token"] != SECRETS["SSO"]:
        return _json({}, 401)
    keys = {"accessKeyId": "ASIAOFTHESTANDIN", "secretAccessKey": cloud.issue("secret")}
    end = int((time.time() + 300) * 1000)
    return _json({"roleCredentials": {**keys, "sessionToken": cloud.issue("session"), "expiration": end}})


def _oauth(cloud: Cloud, sent: Sent) -> Response:
    return _json({"access_token": cloud.issue("vendor"), "expires_in": cloud.life, "token_type": "Bearer"})


_GIVEN: Mapping[str, Callable[[Cloud, Sent], Response]] = {
    "/google/token": _google,
    "/google/accounts/": _impersonated,
    r"/github\?": _github,
    "/$": _sts,
    r"/federation/credentials\?": _sso,
    ".*/oauth/token$": _oauth,
}
"""What gives tokens, by the beginnings of paths."""


def _plain(sent: Sent) -> tuple[str, Mapping[str, Any]]:
    """Return the path and the body by which a vendor's own API is asked for the same."""
    body = sent.content
    if found := re.search(r"/publishers/google/models/(.*)", sent.target):
        return f"/gemini/v1/models/{found[1]}", body
    if found := re.search(r"/publishers/anthropic/models/(.*):(\w+)$", sent.target):
        assert (True, "stream" in found[2]) == ("20" in body.pop("anthropic_version"), bool(body.get("stream")))
        return "/anthropic/v1/messages", {**body, "model": found[1]}
    last = re.search("/(chat/completions|responses|messages)([?].*)?$", sent.target)
    assert last, sent.target
    return ("/anthropic/v1/messages" if last[1] == "messages" else f"/openai/v1/{last[1]}"), body


def asking(respond: Respond) -> Callable[[str, Mapping[str, Any]], Awaitable[Response]]:
    """Return what asks a gateway of keval with this responder, in this process."""
    client = httpx.AsyncClient(transport=httpx.ASGITransport(build_app(respond)), base_url="http://127.0.0.1:8080")

    async def ask(path: str, body: Mapping[str, Any]) -> Response:
        reply = await client.post(path, json=body)
        headers = {name: reply.headers[name] for name in ("content-type", "retry-after") if name in reply.headers}
        if headers["content-type"].startswith("text/event-stream"):
            return StreamingResponse(iter([reply.content]), headers=headers)
        return Response(reply.content, reply.status_code, headers)

    return ask


def _json(body: Mapping[str, Any], status: int = 200) -> Response:
    return Response(json.dumps(body), status, media_type="application/json")
