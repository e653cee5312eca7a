"""`keval plugins`: what is installed, listed without importing any of it."""

from __future__ import annotations

import json

import click

from keval.seams import registry

_PLURALS = {"middleware": "middleware", "proxy": "proxies"}


@click.command("plugins")
@click.option("--json", "as_json", is_flag=True, help="Print data for machines on stdout.")
def command(as_json: bool) -> None:
    """List the installed plugins by kind, each with the package it comes from."""
    found = [component for group in registry.groups() for component in registry.offered(group)]
    if as_json:
        rows = [
            {"kind": item.kind, "name": item.name, "distribution": item.distribution, "version": item.version}
            for item in found
        ]
        click.echo(json.dumps(rows, indent=2))
        return
    width = max((len(item.name) for item in found), default=0)
    kind = None
    for item in found:
        if item.kind != kind:
            click.echo(f"{'' if kind is None else chr(10)}{_PLURALS.get(item.kind, f'{item.kind}s')}")
            kind = item.kind
        click.echo(f"  {item.name:<{width}}  {item.distribution} {item.version}")
