"""`keval play`: asks agents under conditions side by side, in the browser, until Ctrl-C."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    import socket

    from keval.frontend import Evaluation

__all__ = ["play"]

_PORT = 8092


@click.command()
@click.argument("config", type=click.Path(path_type=Path))
@click.option(
    "--agent", "agents", multiple=True, metavar="NAME", help="Only this agent: a label, or any installed one."
)
@click.option("--condition", "conditions", multiple=True, metavar="LABEL", help="Only this condition.")
@click.option(
    "--metric", "metrics", multiple=True, metavar="NAME", help="Only this metric: a name, or any installed one."
)
@click.option(
    "--judge", "judges", multiple=True, metavar="NAME", help="Only this judge: a label, or any installed one."
)
@click.option("-p", "plugins", multiple=True, metavar="NAME", help="Load a hook plugin; no:NAME leaves it out.")
@click.option(
    "-m", "--model", "models", multiple=True, metavar="LABEL=PROVIDER/NAME", help="Ask an agent or judge another model."
)
@click.option("--only", multiple=True, metavar="AGENT/CONDITION", help="Begin with this column alone switched on.")
@click.option(
    "-o",
    "--output-dir",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("results"),
    show_default=True,
    help="The results directory.",
)
@click.option("--port", type=click.IntRange(0, 65535), help=f"0 takes a free port.  [default: {_PORT}, or a free one]")
@click.option("--browser/--no-browser", default=True, help="Open the page in a browser.  [default: --browser]")
def play(
    *,
    config: Path,
    agents: tuple[str, ...],
    conditions: tuple[str, ...],
    metrics: tuple[str, ...],
    judges: tuple[str, ...],
    plugins: tuple[str, ...],
    models: tuple[str, ...],
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

    from keval.frontend import Selection, learn_config, load, redactor, select
    from keval_viewer.hosting import listener_on

    evaluation = load(config)
    learn_config(redactor(), evaluation)
    selection = Selection(
        agents=agents, conditions=conditions, metrics=metrics, judges=judges, plugins=plugins, models=models
    )
    listener = listener_on(port, _PORT)
    with listener, suppress(KeyboardInterrupt):
        asyncio.run(_serve(select(evaluation, selection), only, output_dir, listener, browser=browser))


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
