"""`keval tools`: what the servers of a config offer."""

from __future__ import annotations

from pathlib import Path

import click

from keval.cli.options import json_option
from keval.cli.session import run_to_end
from keval.config.load import load
from keval.config.secrets import learn_config
from keval.report.console import data_console, print_json
from keval.report.terminal import redactor


@click.command("tools")
@click.argument("config", type=click.Path(path_type=Path))
@click.option("--context", "contexts", multiple=True, metavar="NAME", help="Only this context. Repeatable.")
@json_option
def command(*, config: Path, contexts: tuple[str, ...], as_json: bool) -> None:
    """Start the MCP servers of CONFIG and show what each offers, as a model gets it.

    Names, descriptions, parameters, hints, the server's instructions, and about how many tokens each tool takes in a
    model request; where a context is changed by the config, also what was before. No agent is started.
    """
    from keval.execute.bringup.tool_listings import read_offers
    from keval.report.tool_listings import describe_offers, print_offers

    evaluation = load(config)
    learn_config(redactor(), evaluation)
    found = run_to_end(read_offers(evaluation, contexts, redactor()))
    print_json(describe_offers(found)) if as_json else print_offers(found, data_console())
