"""`keval view` and `keval play`: pages in the browser, of the runs of a folder or of a play, until Ctrl-C."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import attrs
import click

from keval.cli.config_argument import config_argument, read_config
from keval.cli.options import budget_option, choice_options, results_option, results_type
from keval.errors import typed

if TYPE_CHECKING:
    import socket

    from starlette.applications import Starlette

    from keval.run.select import Selection

F = TypeVar("F", bound=Callable[..., Any])

_VIEW_PORT = 8091
_PLAY_PORT = 8092


def _port_option(usual: int) -> Callable[[F], F]:
    text = f"0 takes a free port.  [default: {usual}, or a free one]"
    return click.option("--port", type=click.IntRange(0, 65535), help=text)


_browser_option = click.option(
    "--browser/--no-browser", default=True, help="Open the page in a browser.  [default: --browser]"
)


@click.command()
@click.argument("results", type=results_type, default=Path("results"))
@click.option("--run", "chosen", metavar="RUN", help="Begin at this run: a path, an id or its start, or `latest`.")
@click.option(
    "--questions", metavar="CONFIG", type=click.Path(path_type=Path), help="Decide on the questions of CONFIG."
)
@_port_option(_VIEW_PORT)
@_browser_option
def view(*, results: Path, chosen: str | None, questions: Path | None, port: int | None, browser: bool) -> None:
    """Show the runs of RESULTS in the browser, those that are running as they go on.

    RESULTS is a folder, by default `results`, or a URL such as s3://bucket/prefix. The URL that is printed lets a
    browser in; nobody else is.
    """
    from keval.cli.session import run_to_end
    from keval.store.run import find_run  # `keval --help` need not wait for these
    from keval_analysis.question_review import QuestionFile  # `keval --help` need not wait for these
    from keval_viewer.app import build_app, listener_on
    from keval_viewer.guard import session_of
    from keval_viewer.page import run_url
    from keval_viewer.pages import VIEW_PAGES
    from keval_viewer.pages.questions import PLACE

    file = None if questions is None else QuestionFile.of(read_config(questions))
    begin = "/" if file is None else PLACE
    if chosen is not None:
        run = find_run(chosen, results)
        results = run.path.parents[1]
        begin = run_url(run)
    app = build_app(results, VIEW_PAGES)
    app.state.questions = file
    with listener_on(port, _VIEW_PORT) as listener, suppress(KeyboardInterrupt):
        run_to_end(_serve(app, listener, begin, session_of(results), browser=browser), beats=False)


@click.command()
@config_argument
@choice_options
@budget_option
@click.option("--only", multiple=True, metavar="AGENT/CONDITION", help="Begin with this column alone switched on.")
@results_option
@_port_option(_PLAY_PORT)
@_browser_option
def play(
    *,
    config: Path,
    selection: Selection,
    budget: tuple[tuple[str, float], ...],
    only: tuple[str, ...],
    output_dir: Path,
    port: int | None,
    browser: bool,
) -> None:
    """Ask the agents of CONFIG under its conditions, side by side, in the browser.

    Questions are typed or chosen from the dataset. Answers are scored as they come, and kept in a run directory under
    the results directory, like those of `keval run`. The URL that is printed lets a browser in; nobody else is.
    """
    from keval.cli.session import run_to_end
    from keval.run.select import select
    from keval_viewer.app import listener_on, play_app

    selected = select(read_config(config), attrs.evolve(selection, budget=dict(budget)))

    async def serve() -> None:
        async with play_app(selected, output_dir, only) as (app, opened):
            await _serve(app, listener, browser=browser)
        for run in opened.runs:  # one in which nothing was asked is removed
            click.echo(f"kept in {run.path}; `{typed('report', run.path)}` shows it")

    # First the port, so that one which is taken is told before agents and servers are brought up.
    with listener_on(port, _PLAY_PORT) as listener, suppress(KeyboardInterrupt):
        run_to_end(serve(), beats=False)


async def _serve(
    app: Starlette, listener: socket.socket, begin: str = "/", session: str | None = None, *, browser: bool
) -> None:
    """Serve an application until the process is told to end, and print the URL that lets a browser in."""
    import asyncio

    from keval_viewer.app import open_browser, serving

    async with serving(app, listener, session) as served:
        click.echo(served.url(begin))
        if browser:
            await open_browser(served.url(begin))
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:  # Ctrl-C: all is closed as at any end, and a second one ends the process
            task = asyncio.current_task()
            assert task is not None  # noqa: S101 - for mypy: it runs
            task.uncancel()
