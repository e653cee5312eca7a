"""`keval trust`: a run of somebody else may go on, as its manifest says."""

from __future__ import annotations

from pathlib import Path

import click

from keval.cli.messages import tell
from keval.cli.options import results_option


@click.command("trust")
@click.argument("run")
@results_option
def command(*, run: str, output_dir: Path) -> None:
    """Let `keval resume`, `score`, `clean` and a replay run what the manifest of RUN names: files, programs, addresses.

    RUN is a path, an id or its start, of a run that another account made, or whose config was changed.
    """
    from keval.store.run import find_run
    from keval.store.writer import RunWriter
    from keval_analysis.own_runs import signed

    found = find_run(run, output_dir)
    RunWriter(found.path).write_manifest(signed(found.manifest))
    tell(f"trusted {found.path / 'manifest.json'}")
