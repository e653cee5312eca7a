"""`keval view`: shows the runs of a results folder in the browser, until Ctrl-C."""

from __future__ import annotations

import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from keval.plugin import ConfigError

if TYPE_CHECKING:
    import asyncio
    import socket

__all__ = ["view"]

_PORT = 8091


@click.command()
@click.argument("results", type=click.Path(path_type=Path, file_okay=False), default=Path("results"))
@click.option("--run", "chosen", metavar="RUN", help="Begin at this run: a path, an id or its start, or `latest`.")
@click.option("--port", type=click.IntRange(0, 65535), help=f"0 takes a free port.  [default: {_PORT}, or a free one]")
@click.option("--browser/--no-browser", default=True, help="Open the page in a browser.  [default: --browser]")
def view(*, results: Path, chosen: str | None, port: int | None, browser: bool) -> None:
    """Show the runs of RESULTS in the browser, those that are running as they go on.

    RESULTS is `results` if it is left out. The URL that is printed lets a browser in; nobody else is.
    """
    import asyncio  # `keval --help` need not wait for it

    from keval.frontend import find_run
    from keval_viewer.addresses import run_url

    begin = "/" if chosen is None else run_url(find_run(chosen, results))
    listener = _listener(port)
    with listener, suppress(KeyboardInterrupt):
        asyncio.run(_serve(results, begin, listener, browser=browser))


def _listener(port: int | None) -> socket.socket:
    """Listen on a port, or on the usual one, or on a free one if that is taken. Raises ConfigError."""
    from keval_loopback import listen

    if port is None:
        with suppress(OSError):
            return listen(_PORT)
    try:
        return listen(port or 0)
    except OSError as error:
        raise ConfigError(f"port {port}: {error.strerror}; choose another with --port, or 0") from error


async def _serve(results: Path, begin: str, listener: socket.socket, *, browser: bool) -> None:
    import asyncio

    from keval_viewer.app import build_app, serving
    from keval_viewer.pages import VIEW_PAGES

    async with serving(build_app(results, VIEW_PAGES), listener) as served:
        with _stopping() as stopping:
            # Before the address is told: whoever reads it may tell this process to end at once.
            click.echo(served.url(begin))
            if browser:
                await asyncio.to_thread(webbrowser.open, served.url(begin))
            await stopping.wait()


@contextmanager
def _stopping() -> Iterator[asyncio.Event]:
    """Yield what is set by Ctrl-C, and when the process is told to end."""
    import asyncio
    import signal

    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError):  # on Windows, Ctrl-C raises KeyboardInterrupt
            loop.add_signal_handler(number, stopping.set)
    yield stopping
