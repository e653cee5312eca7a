"""The command `keval new`."""

from __future__ import annotations

from pathlib import Path

import click

from keval.cli.messages import tell
from keval.seams.installation import Installation
from keval_start.new.command import KINDS, Package


@click.command("new")
@click.argument("kind", type=click.Choice([*KINDS]))
@click.argument("name", metavar="NAME")
@click.option(
    "-d",
    "--to",
    "folder",
    type=click.Path(path_type=Path),
    help="The folder to write.  [default: VENDOR-THING]",
)
def new(*, kind: str, name: str, folder: Path | None) -> None:
    """Write the package of a plugin, a KIND named NAME: `acme/brevity` or `acme-brevity`.

    It has a small example to change, and a test that checks it by the rules of its seam. The folder must not exist.
    """
    package = Package.of(kind, name)
    where = folder or Path(package.distribution)
    installation = Installation.here_and_now()
    for path in package.write(where):
        click.echo(path)
    commands = (f"    {each}" for each in package.commands(where, installation))
    tell("\n".join([f"{package.plugin} is written; next:", *commands]))
