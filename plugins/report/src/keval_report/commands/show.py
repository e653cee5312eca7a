"""`keval show`: what a run was made of, one of its trials or samples, or what went wrong in it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from textwrap import indent

import attrs
import click
import orjson

from keval.cli.console import json_text, print_json
from keval.cli.help import SectionedCommand
from keval.cli.options import json_option, results_option
from keval.errors import RunError
from keval.store.run import Run, find_run
from keval.store.serialization import score_line, to_plain, trial_line
from keval_analysis.claims import unverified_claims, worst_first
from keval_analysis.seal import SealCheck
from keval_report.contexts import print_differences, server_differences
from keval_report.display import tell_changed
from keval_report.terminal import trials as lists
from keval_report.terminal.console import data_console
from keval_report.transcripts import Bands, describe_traffic, print_run, print_trial

_POSITIVE = click.IntRange(min=1)
_WORST = 20
"""How many of the worst trials are shown without `--limit`."""


@click.command("show", cls=SectionedCommand)
@click.argument("run")
@click.option("--trial", metavar="ID", help="Show this trial: messages, tool calls and scores.")
@click.option("--request", is_flag=True, help="With --trial: show its first model request, as it was sent.")
@click.option("--traffic", is_flag=True, help="With --trial: show what passed with models and servers, as JSON.")
@click.option("--full", is_flag=True, help="With --trial: show all that it left, such as a long diff.")
@click.option("--sample", metavar="ID", help="Show the answers of all arms to this sample, side by side.")
@click.option("--repetition", type=_POSITIVE, metavar="N", help="With --sample: which repetition.  [default: 1]")
@click.option("--contexts", is_flag=True, help="Show how the servers of the conditions differ.")
@click.option("--failed", is_flag=True, help="List the trials that failed, with their messages.")
@click.option("--unscored", is_flag=True, help="List the scores without a value, with their reasons.")
@click.option("--unverified", is_flag=True, help="List the unverified claims, in the worst answers first.")
@click.option("--worst", metavar="METRIC", help="List the trials that scored worst; METRIC@JUDGE for one judge.")
@click.option("--limit", type=_POSITIVE, metavar="N", help="List at most N.  [default: 20 of the worst, else all]")
@results_option
@json_option
def command(
    *,
    run: str,
    trial: str | None,
    request: bool,
    traffic: bool,
    full: bool,
    sample: str | None,
    repetition: int | None,
    contexts: bool,
    failed: bool,
    unscored: bool,
    unverified: bool,
    worst: str | None,
    limit: int | None,
    output_dir: Path,
    as_json: bool,
) -> None:
    """Show RUN: a path, an id or its start, or `latest`; or one trial or sample of it, or what went wrong in it."""
    if sum((trial is not None, sample is not None, contexts, failed, unscored, unverified, worst is not None)) > 1:
        kinds = "--trial, --sample, --contexts, --failed, --unscored, --unverified and --worst"
        raise click.UsageError(f"{kinds} exclude each other; choose one")
    if request and trial is None:
        raise click.UsageError("--request goes with --trial: it shows what the model of one trial was sent")
    if traffic and (trial is None or request):
        raise click.UsageError("--traffic goes with --trial, without --request: it has all requests of the trial")
    if full and (trial is None or request or traffic):
        raise click.UsageError("--full goes with --trial alone: it shows all that the trial left")
    if repetition is not None and sample is None:
        raise click.UsageError("--repetition goes with --sample; a trial's id has its repetition")
    if limit is not None and not (failed or unscored or unverified or worst is not None):
        raise click.UsageError("--limit goes with --failed, --unscored, --unverified or --worst")
    found, console = find_run(run, output_dir), data_console()
    if trial is not None and request:
        _show_request(found, trial)
    elif trial is not None and traffic:
        print_json(describe_traffic(found, trial))
    elif trial is not None:
        _show_trial(found, trial, as_json=as_json, full=full)
    elif sample is not None:
        view = lists.side_by_side(found, sample, repetition or 1)
        print_json(lists.describe_sides(view)) if as_json else lists.print_sides(view, _bands(found), console)
    elif contexts:
        print_json([*map(attrs.asdict, server_differences(found))]) if as_json else print_differences(found, console)
    elif failed:
        trials = found.trials()
        _print_array(lists.describe_failed(trials, limit)) if as_json else lists.print_failed(trials, limit, console)
    elif unscored:
        lines = found.scores()
        _print_array(lists.describe_unscored(lines, limit)) if as_json else lists.print_unscored(lines, limit, console)
    elif unverified:
        claims = worst_first(unverified_claims(found))[:limit]
        _print_array(map(attrs.asdict, claims)) if as_json else lists.print_claims(claims, console)
    elif worst is not None:
        ranked = lists.worst_trials(found, worst, limit or _WORST)
        print_json(lists.describe_worst(ranked)) if as_json else lists.print_worst(ranked, _bands(found), console)
    elif as_json:
        print_json(to_plain(found.manifest))
    else:
        check = SealCheck(found)
        print_run(check.run.manifest, check.run.trials(), console)
        tell_changed(check)


def _show_trial(run: Run, name: str, *, as_json: bool, full: bool) -> None:
    trial = run.trial(name)
    scores = run.scores_of(name)
    if as_json:
        lines = [orjson.loads(score_line(line)) for line in scores]
        print_json({**orjson.loads(trial_line(trial)), "scores": lines})
    else:
        blobs = run.path / "blobs"
        print_trial(trial, scores, _bands(run), data_console(), replay=run.manifest.replay, blobs=blobs, full=full)


def _show_request(run: Run, name: str) -> None:
    trial = run.trial(name)
    if (body := run.kept_request(trial.transcript)) is not None:
        try:
            print_json(orjson.loads(body))
        except orjson.JSONDecodeError as error:
            where = run.path / "blobs" / str(trial.transcript and trial.transcript.request)
            told = f"the first model request of {name!r} cannot be shown as JSON: {error}"
            raise RunError(f"{told}; its {len(body):,} bytes are in {where}, as they were sent") from error
        return
    if trial.transcript is None or trial.transcript.request is None:
        why = "none was sent, or its agent did not report it to the builder"
        raise RunError(f"the trial {name!r} has no model request: {why}")
    arm = (each for each in run.trials() if (each.agent, each.condition) == (trial.agent, trial.condition))
    kept = next((each.id for each in arm if run.kept_request(each.transcript) is not None), None)
    other = f"; of this agent and condition it keeps that of {kept!r}" if kept else ""
    told = f"the run does not keep the first model request of {name!r}{other}"
    raise RunError(f"{told}; execution.keep_requests keeps that of every trial")


def _bands(run: Run) -> Bands:
    return {entry.metric: entry.scale.bands for entry in run.manifest.scorers}


def _print_array(items: Iterable[object]) -> None:
    """Print data for machines as an array, one item after the other, so that none of them stays in memory."""
    begin = "[\n"
    for item in items:
        click.echo(begin + indent(json_text(item), "  "), nl=False)
        begin = ",\n"
    click.echo("[]" if begin == "[\n" else "\n]")
