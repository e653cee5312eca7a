"""`keval tools`: what the servers of a config offer."""

from __future__ import annotations

from pathlib import Path

import click

from keval.cli.config_argument import config_argument, read_config
from keval.cli.console import print_json
from keval.cli.messages import redactor
from keval.cli.options import json_option
from keval.cli.session import run_to_end
from keval_report.terminal.console import data_console


@click.command("tools")
@config_argument
@click.option("--context", "contexts", multiple=True, metavar="NAME", help="Only this context. Repeatable.")
@json_option
def command(*, config: Path, contexts: tuple[str, ...], as_json: bool) -> None:
    """Start the MCP servers of CONFIG and show what each offers, as a model gets it.

    Names, descriptions, parameters, hints, the server's instructions, and about how many tokens each tool takes in a
    model request; where a context is changed by the config, also what was before. No agent is started.
    """
    from keval_mcp.served_context import read_tool_listings
    from keval_report.contexts import describe_tool_listings, print_tool_listings

    evaluation = read_config(config)
    found = run_to_end(read_tool_listings(evaluation, contexts, redactor()))
    print_json(describe_tool_listings(found)) if as_json else print_tool_listings(found, data_console())
