"""`keval record`: what can be done with the recording of a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from keval.cli.console import message_console, print_json, safe
from keval.cli.options import json_option, local_folder_type, results_type
from keval.records.formats import counted
from keval.store.run import Run, find_run


@click.group("record")
def command() -> None:
    """Make small recordings of large ones. `keval run --record` makes a recording."""


@command.command("trim")
@click.argument("run")
@click.option("--samples", multiple=True, metavar="ID[,ID]...", help="Keep these samples.  [default: all]")
@click.option("--agent", multiple=True, metavar="LABEL", help="Keep only this agent.")
@click.option("--condition", multiple=True, metavar="LABEL", help="Keep only this condition.")
@click.option("--repetitions", type=click.IntRange(min=1), metavar="N", help="Keep the first N repetitions.")
@click.option(
    "-o", "--output", "to", required=True, type=local_folder_type, metavar="DIR", help="The new run directory."
)
@click.option(
    "--root",
    default="results",
    show_default=True,
    type=results_type,
    metavar="DIR",
    help="The results directory in which RUN is looked for.",
)
@json_option
def trim_command(
    *,
    run: str,
    samples: tuple[str, ...],
    agent: tuple[str, ...],
    condition: tuple[str, ...],
    repetitions: int | None,
    to: Path,
    root: Path,
    as_json: bool,
) -> None:
    """Copy a part of the recorded RUN to a run directory of its own, which is replayed as the whole is.

    RUN is a path, an id or its start, or `latest`. The copy has the traffic, trials, scores and blobs of what is kept,
    and nothing of the rest; so it is small enough to be committed.
    """
    from keval_replay.trim import TrimSelection, trim  # imports what decompresses

    found = find_run(run, root)
    wanted = TrimSelection([*_samples(found, samples)], agent, condition, repetitions)
    trimmed = trim(found, wanted, to)
    messages = message_console()
    if trimmed.without_traffic:
        first, *others = trimmed.without_traffic
        more = f" and {counted(len(others), 'other trial')}" if others else ""
        told = f"note: {first}{more} are not in the recording and cannot be replayed"
        messages.print(safe(told, "yellow"), soft_wrap=True)
    if as_json:
        print_json({"path": str(to), "trials": trimmed.trials, "without_traffic": list(trimmed.without_traffic)})
    else:
        size = sum(path.stat().st_size for path in to.rglob("*") if path.is_file())
        click.echo(f"{safe(str(to)).plain}: {counted(trimmed.trials, 'trial')}, {round(size / 1000):,} kB")


def _samples(run: Run, given: Sequence[str]) -> Iterator[str]:
    """Yield ids that are given one by one, or with commas between."""
    for text in given:
        yield from [text] if text in run.samples.ids else (part.strip() for part in text.split(",") if part.strip())
