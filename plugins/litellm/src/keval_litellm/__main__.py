"""`python -m keval_litellm --provider=vertex_ai --port=0` serves LiteLLM on loopback until Ctrl-C."""

from __future__ import annotations

import argparse
import asyncio
import os
import secrets
import socket

from keval_gateway.chat import wire_urls
from keval_litellm.bounded import bound_replies
from keval_litellm.provider import KEY_VARIABLE, PROVIDERS
from keval_litellm.server import build_app
from keval_loopback.loopback import inherited, listen
from keval_loopback.serving import serving_until_ended


def main() -> None:
    """Serve the provider that the arguments name."""
    parser = argparse.ArgumentParser(prog="python -m keval_litellm")
    parser.add_argument("--provider", required=True, choices=PROVIDERS)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--listen-fd", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    listener = listen(given.port) if given.listen_fd is None else inherited(given.listen_fd)
    asyncio.run(_serve(given.provider, listener, child=given.child))


async def _serve(provider: str, listener: socket.socket, *, child: bool) -> None:
    bound_replies()
    key = os.environ.get(KEY_VARIABLE) or secrets.token_urlsafe(24)
    async with serving_until_ended(build_app(provider, key), listener, child=child) as base:
        if not child:
            print(f"{wire_urls(base)['openai-chat']} with the key {key}", flush=True)  # noqa: T201 - started by hand


if __name__ == "__main__":
    main()
