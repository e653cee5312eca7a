"""A server that takes only tokens of its own authorization server.

This one issues them for client credentials, and to everybody who comes to its login page, for clients that register or
are known without a secret. Other clients have the secret `s3cret-of-keval`; `signer` signs with the private key whose
public one is given. The tokens of the client `short` expire at once, by what is said of them. `revoke` makes all tokens
issued so far worthless, and `admin` wants the scope of that name, too. `/log` tells what the authorization server was
asked since the last time.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
import socket
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

import jwt
import uvicorn
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.mcpserver import Context, MCPServer
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

SECRET = "s3cret-of-keval"


class Guard:
    """Issues tokens and knows which are good."""

    def __init__(self, url: str, public_key: str) -> None:
        self.url, self.public_key = url, public_key
        self.issued: dict[str, AccessToken] = {}
        self.codes: dict[str, str] = {}
        self.log: list[dict[str, Any]] = []

    async def verify_token(self, token: str) -> AccessToken | None:
        return self.issued.get(token)

    async def metadata(self, request: Request) -> Response:
        return JSONResponse(
            {
                "issuer": self.url,
                "authorization_endpoint": f"{self.url}/authorize",
                "token_endpoint": f"{self.url}/token",
                "response_types_supported": ["code"],
                "registration_endpoint": f"{self.url}/register",
                "grant_types_supported": ["client_credentials", "authorization_code", "refresh_token"],
                "code_challenge_methods_supported": ["S256"],
            }
        )

    async def register(self, request: Request) -> Response:
        self.log.append({"how": "register"})
        return JSONResponse({**await request.json(), "client_id": "person", "token_endpoint_auth_method": "none"})

    async def authorize(self, request: Request) -> Response:
        asked = request.query_params
        self.log.append({"how": "page", "scope": asked.get("scope"), "resource": asked.get("resource")})
        code = secrets.token_hex(8)
        self.codes[code] = asked["code_challenge"]
        back = urlencode({"code": code, "state": asked["state"]})
        return RedirectResponse(f"{asked['redirect_uri']}?{back}")

    async def token(self, request: Request) -> Response:
        form = {name: str(value) for name, value in (await request.form()).items()}
        how, client = self.client(form, request.headers.get("authorization", ""))
        self.log.append({"how": how, "scope": form.get("scope"), "resource": form.get("resource")})
        if client is None:
            return JSONResponse({"error": "invalid_client"}, status_code=401)
        token = secrets.token_hex(16)
        self.issued[token] = AccessToken(
            token=token,
            client_id=client,
            scopes=form.get("scope", "read").split(),
            expires_at=int(time.time()) + 3600,
            resource=form.get("resource"),
        )
        expires_in = 0 if client == "short" else 3600
        refresh = {} if form["grant_type"] == "client_credentials" else {"refresh_token": "refresh"}
        return JSONResponse({"access_token": token, "token_type": "Bearer", "expires_in": expires_in, **refresh})

    def client(self, form: Mapping[str, str], authorization: str) -> tuple[str, str | None]:
        """Return how a client authenticates, and which it is."""
        if form["grant_type"] == "refresh_token":
            return "refresh", form["client_id"] if form["refresh_token"] == "refresh" else None
        if form["grant_type"] == "authorization_code":
            verifier = hashlib.sha256(form["code_verifier"].encode()).digest()
            proven = base64.urlsafe_b64encode(verifier).decode().rstrip("=") == self.codes.pop(form["code"], None)
            return "code", form["client_id"] if proven else None
        if assertion := form.get("client_assertion"):
            claims = jwt.decode(assertion, self.public_key, algorithms=["ES256"], audience=self.url)
            return "key", claims["sub"] if claims["sub"] == claims["iss"] == "signer" else None
        if authorization:
            name, _, secret = base64.b64decode(authorization.removeprefix("Basic ")).decode().partition(":")
            return "header", name if secret == SECRET else None
        return "body", form.get("client_id") if form.get("client_secret") == SECRET else None

    async def told(self, request: Request) -> Response:
        asked, self.log = self.log, []
        return JSONResponse(asked)


def _server(guard: Guard, resource: str) -> MCPServer:
    server = MCPServer(
        "guarded",
        token_verifier=guard,
        auth=AuthSettings.model_validate(
            {
                "issuer_url": guard.url,
                "resource_server_url": resource,
                "required_scopes": ["read"],
                "validate_token_resource": True,
            }
        ),
    )

    @server.tool()
    def whoami(ctx: Context) -> str:
        """Return the client, and the token it has."""
        token = get_access_token()
        assert token is not None
        return f"{token.client_id} has {token.token}"

    @server.tool()
    def revoke() -> str:
        """Make all tokens worthless."""
        guard.issued.clear()
        return "revoked"

    @server.tool()
    def admin() -> str:
        """Do what needs another scope."""
        return "done"

    return server


def _stepped(app: ASGIApp, guard: Guard) -> ASGIApp:
    """Let only tokens with the scope `admin` call the tool of that name."""

    async def step_up(scope: Scope, receive: Receive, send: Send) -> None:
        sent: list[Message] = []
        while scope["type"] == "http" and (not sent or sent[-1].get("more_body")):
            sent.append(await receive())
        headers = dict(scope.get("headers", ()))
        token = guard.issued.get(headers.get(b"authorization", b"").decode().removeprefix("Bearer "))
        wants = any(b'"name":"admin"' in each.get("body", b"") for each in sent)
        if wants and token is not None and "admin" not in token.scopes:
            challenge = 'Bearer error="insufficient_scope", scope="read admin"'
            refusal = Response("", status_code=403, headers={"www-authenticate": challenge})
            await refusal(scope, receive, send)
        else:
            again = iter(sent)

            async def replay() -> Message:
                return next(again, None) or await receive()

            await app(scope, replay, send)

    return step_up


def listen(listener: socket.socket, transport: str, public_key: str, tls: Mapping[str, Any] | None = None) -> None:
    """Serve over `http` or `sse`, and with uvicorn's options `tls` over TLS."""
    url = f"http{'s' if tls else ''}://127.0.0.1:{listener.getsockname()[1]}"
    guard = Guard(url, public_key)
    server = _server(guard, f"{url}/{'sse' if transport == 'sse' else 'mcp'}")
    guarded = server.sse_app() if transport == "sse" else server.streamable_http_app()
    routes = [
        Route("/.well-known/oauth-authorization-server", guard.metadata),
        Route("/token", guard.token, methods=["POST"]),
        Route("/authorize", guard.authorize),
        Route("/register", guard.register, methods=["POST"]),
        Route("/log", guard.told),
        Mount("/", _stepped(guarded, guard)),
    ]
    lifespan = guarded.router.lifespan_context
    app = Starlette(routes=routes, lifespan=lifespan)
    uvicorn.Server(uvicorn.Config(app, log_level="warning", **(tls or {}))).run(sockets=[listener])
