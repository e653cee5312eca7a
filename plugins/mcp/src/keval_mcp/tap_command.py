"""`keval tap`: serves the tap of one context, for any MCP client, until Ctrl-C."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from keval.cli.config_argument import config_argument, read_config
from keval.cli.messages import redactor
from keval.errors import ConfigError
from keval.records.servers import McpServer
from keval_mcp.served_context import ServedContext

if TYPE_CHECKING:
    import asyncio


@click.command()
@config_argument
@click.option("--context", required=True, metavar="NAME", help="The context to serve.")
@click.option("--server", metavar="NAME", help="Which of its servers, if it has several.")
@click.option("--port", type=click.IntRange(0, 65535), default=8090, show_default=True, help="0 takes a free port.")
def tap(*, config: Path, context: str, server: str | None, port: int) -> None:
    """Serve one context of CONFIG as agents get it, with all that is changed of it, on loopback.

    For the MCP Inspector, the conformance suite, or any other client. Every session of a client has a server of its
    own, where keval starts it.
    """
    import asyncio  # `keval --help` need not wait for it

    with suppress(KeyboardInterrupt):
        asyncio.run(_serve(config, context, server, port))


async def _serve(config: Path, label: str, name: str | None, port: int) -> None:
    from keval_loopback.loopback import listen  # the web server takes a third of a second to import
    from keval_loopback.serving import serve
    from keval_mcp.tap.http import KEEP_ALIVE, PATH, ClientSessions

    async with AsyncExitStack() as stack:
        try:
            listener = stack.enter_context(listen(port))
        except OSError as error:
            raise ConfigError(f"port {port}: {error.strerror}; choose another with --port, or 0") from error
        served = await stack.enter_async_context(ServedContext.open(read_config(config), label, redactor()))
        names = [name] if name else [*served.servers]
        if len(names) != 1 or names[0] not in served.servers:
            has = ", ".join(served.servers) or "no server behind the tap"
            raise ConfigError(f"{config}: the context {label!r} has {has}; name one with --server")

        @asynccontextmanager
        async def open_server(capabilities: Mapping[str, Any]) -> AsyncIterator[McpServer]:
            async with served.open_servers(capabilities) as servers:
                yield next(each for each in servers if each.name == names[0])

        sessions = ClientSessions(listener.getsockname()[1], open_server)
        await stack.enter_async_context(serve(sessions, listener=listener, keep_alive=KEEP_ALIVE))
        stack.push_async_callback(sessions.close)
        stopping = _stopping()  # before the address is told: whoever reads it may tell this process to end at once
        click.echo(f"http://127.0.0.1:{sessions.port}{PATH}")
        await stopping.wait()


def _stopping() -> asyncio.Event:
    """Return what is set by Ctrl-C, and when the process is told to end."""
    import asyncio
    import signal

    stopping = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError):  # on Windows, Ctrl-C raises KeyboardInterrupt
            asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    return stopping
