"""The weather MCP server as a command: `keval-weather`, or `python -m keval_weather.server`."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import secrets
import socket
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from keval_weather.snapshot import load_snapshot

if TYPE_CHECKING:
    import uvicorn


_LOOPBACK = "127.0.0.1"
_STDIN = 0


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until interrupted, or until stdin closes where that is the transport or was asked for."""
    parser = argparse.ArgumentParser(prog="keval-weather", description="The weather of a snapshot over MCP.")
    parser.add_argument("--transport", choices=("stdio", "http"), default="stdio", help="default: %(default)s")
    parser.add_argument("--port", type=int, default=0, help="port on 127.0.0.1 for http; default: any free one")
    parser.add_argument("--path", default="", help="path of the URL for http, such as /mcp; default: a random one")
    parser.add_argument(
        "--exit-with-stdin", action="store_true", help="for http: end when stdin closes, so as not to outlive a parent"
    )
    options = parser.parse_args(arguments)
    with suppress(KeyboardInterrupt):
        if options.transport == "stdio":
            asyncio.run(_serve_stdio())
            return
        try:
            listener = _listen(options.port)
        except (OSError, OverflowError) as error:
            parser.error(f"port {options.port} cannot be used: {error}; choose another with --port")
        with listener:
            path = f"/{options.path.strip('/') or secrets.token_urlsafe(18)}"
            asyncio.run(_serve_http(listener, path, options.exit_with_stdin))


def _listen(port: int) -> socket.socket:
    # With the protocol named, asyncio switches Nagle's algorithm off; it costs 40 ms a call otherwise.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((_LOOPBACK, port))
        listener.listen(128)
    except (OSError, OverflowError):
        listener.close()
        raise
    return listener


async def _serve_stdio() -> None:
    from keval_weather.tools import PreferenceStore, build_server  # imports the MCP SDK, which takes most of a second

    await build_server(load_snapshot(), PreferenceStore()).run_stdio_async()


async def _serve_http(listener: socket.socket, path: str, exit_with_stdin: bool) -> None:
    """Serve at `path` and print `{"port": N, "path": PATH}`, as one line on stdout; connections wait from then on."""
    import uvicorn  # with the MCP SDK, see above
    from mcp.server.transport_security import TransportSecuritySettings

    from keval_weather.tools import PreferenceStore, build_server

    # State belongs to trials, not to sessions, so there are none: a client never finds its session gone.
    port = listener.getsockname()[1]
    app = build_server(load_snapshot(), PreferenceStore()).streamable_http_app(
        streamable_http_path=path,
        stateless_http=True,
        json_response=True,
        # A web page is led here by DNS under another host, or names itself as the origin.
        transport_security=TransportSecuritySettings(allowed_hosts=[f"{_LOOPBACK}:{port}", f"localhost:{port}"]),
    )
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False, timeout_graceful_shutdown=1))
    if exit_with_stdin:
        threading.Thread(target=_end_with_stdin, args=(server,), daemon=True).start()
    print(json.dumps({"port": port, "path": path}), flush=True)  # noqa: T201 - the command's output
    await server.serve(sockets=[listener])


def _end_with_stdin(server: uvicorn.Server) -> None:
    # sys.stdin would be locked by this thread, and Python aborts at its end where such a lock is held.
    while os.read(_STDIN, 4096):
        pass
    server.should_exit = True


if __name__ == "__main__":
    main()
