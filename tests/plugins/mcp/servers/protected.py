"""A server that takes the tokens of another's authorization server: JWTs for itself, signed by a key of its JWKS."""

from __future__ import annotations

import asyncio
import socket

import jwt
import uvicorn
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.mcpserver import MCPServer


class Verifier:
    """Knows the tokens that `issuer` gave for `resource`."""

    def __init__(self, issuer: str, resource: str) -> None:
        self.issuer, self.resource = issuer, resource
        self.keys = jwt.PyJWKClient(f"{issuer}/jwks")

    async def verify_token(self, token: str) -> AccessToken | None:
        try:
            key = await asyncio.to_thread(self.keys.get_signing_key_from_jwt, token)
            # keval renews in time: tokens of a test that are good for a second may be late on the way.
            claims = jwt.decode(token, key, audience=self.resource, issuer=self.issuer, leeway=60)
        except jwt.PyJWTError:
            return None
        scopes = claims.get("scope", "").split()
        return AccessToken(token=token, client_id=claims["client_id"], scopes=scopes, resource=claims["aud"])


def listen(listener: socket.socket, issuer: str) -> None:
    """Serve over streamable HTTP."""
    resource = f"http://127.0.0.1:{listener.getsockname()[1]}/mcp"
    settings = {"issuer_url": issuer, "resource_server_url": resource, "required_scopes": ["read"]}
    server = MCPServer(
        "protected",
        token_verifier=Verifier(issuer, resource),
        auth=AuthSettings.model_validate({**settings, "validate_token_resource": True}),
    )

    @server.tool()
    def whoami() -> str:
        """Return the client, its scopes, and the end of its token."""
        token = get_access_token()
        assert token is not None
        return f"{token.client_id} {' '.join(token.scopes)} {token.token[-20:]}"

    config = uvicorn.Config(server.streamable_http_app(), log_level="warning")
    uvicorn.Server(config).run(sockets=[listener])
