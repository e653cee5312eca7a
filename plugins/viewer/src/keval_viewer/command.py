"""`keval view`: shows the runs of a results folder in the browser, until Ctrl-C."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

from keval.plugin import ConfigError

if TYPE_CHECKING:
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

    from keval.plugin import find_run
    from keval_viewer.addresses import run_url
    from keval_viewer.hosting import listener_on

    begin = "/"
    if chosen is not None:
        run = find_run(chosen, results)
        if run.path.resolve().parents[1] != results.resolve():
            raise ConfigError(f"{run.path} is not under {results}; name its results folder: keval view RESULTS --run …")
        begin = run_url(run)
    listener = listener_on(port, _PORT)
    with listener, suppress(KeyboardInterrupt):
        asyncio.run(_serve(results, begin, listener, browser=browser))


async def _serve(results: Path, begin: str, listener: socket.socket, *, browser: bool) -> None:
    from keval_viewer.app import build_app, serving
    from keval_viewer.hosting import open_browser, stopping
    from keval_viewer.pages import VIEW_PAGES
    from keval_viewer.session import session_of

    session = session_of(results)
    async with serving(build_app(results, VIEW_PAGES), listener, session) as served:
        with stopping() as stopped:
            # Before the address is told: whoever reads it may tell this process to end at once.
            click.echo(served.url(begin))
            if browser:
                await open_browser(served.url(begin))
            await stopped.wait()
