"""`keval play`: asks agents under conditions side by side, in the browser, until Ctrl-C."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import click

from keval.plugin import budget_option, choice_options, results_option

if TYPE_CHECKING:
    import socket

    from keval.plugin import Evaluation, Selection

__all__ = ["play"]

_PORT = 8092


@click.command()
@click.argument("config", type=click.Path(path_type=Path))
@choice_options
@budget_option
@click.option("--only", multiple=True, metavar="AGENT/CONDITION", help="Begin with this column alone switched on.")
@results_option
@click.option("--port", type=click.IntRange(0, 65535), help=f"0 takes a free port.  [default: {_PORT}, or a free one]")
@click.option("--browser/--no-browser", default=True, help="Open the page in a browser.  [default: --browser]")
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
    import asyncio  # `keval --help` need not wait for these

    from keval.plugin import learn_config, load, redactor, select
    from keval_viewer.hosting import listener_on

    evaluation = load(config)
    learn_config(redactor(), evaluation)
    selected = select(evaluation, attrs.evolve(selection, budget=dict(budget)))
    listener = listener_on(port, _PORT)
    with listener, suppress(KeyboardInterrupt):
        asyncio.run(_serve(selected, only, output_dir, listener, browser=browser))


async def _serve(
    evaluation: Evaluation, only: tuple[str, ...], results: Path, listener: socket.socket, *, browser: bool
) -> None:
    from keval_viewer.app import serving
    from keval_viewer.hosting import open_browser, stopping
    from keval_viewer.play_app import play_app

    async with play_app(evaluation, results, only) as (app, opened):
        with stopping() as stopped:
            async with serving(app, listener) as served:
                # Before the address is told: whoever reads it may tell this process to end at once.
                click.echo(served.url())
                if browser:
                    await open_browser(served.url())
                await stopped.wait()
    for run in opened.runs:
        if run.path.exists():  # one in which nothing was asked is removed
            click.echo(f"kept in {run.path}; `keval report {run.path}` shows it")
