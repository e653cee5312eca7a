"""`keval clean`: what a run has left outside is cleaned up."""

from __future__ import annotations

from pathlib import Path

import click

from keval.cli.messages import tell
from keval.cli.options import results_option
from keval.cli.session import run_to_end
from keval.errors import RunError
from keval.store.lock import locked
from keval.store.run import find_run


@click.command("clean")
@click.argument("run", default="latest")
@results_option
def command(*, run: str, output_dir: Path) -> None:
    """Run the `cleanup:` commands that RUN still owes, as keval was killed or they failed.

    RUN is a path, an id or its start, or `latest`. `keval resume` does so, too.
    """
    from keval.config.load import rebuild  # with `Setup`, all that runs trials
    from keval_programs.setup import Setup

    found = find_run(run, output_dir)
    section = rebuild(found.manifest, str(found.path / "manifest.json")).section(Setup)
    with locked(found.path):
        had, left = run_to_end(section.clean(found.path))
    tell(f"cleaned up: {', '.join(name for name in had if name not in left) or 'nothing'}")
    if left:
        raise RunError(f"not cleaned up: {', '.join(left)}")
