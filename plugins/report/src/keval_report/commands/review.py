"""`keval review`: what people are to label of a run, and their decisions on the questions of a dataset that wait."""

from __future__ import annotations

import json
import secrets
import shlex
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import attrs
import click

from keval.cli.config_argument import config_here, read_config
from keval.cli.console import print_json, safe
from keval.cli.messages import tell
from keval.cli.options import json_option, results_option
from keval.errors import ConfigError, RunError, suggestion
from keval.records.formats import counted
from keval.records.manifest import ScorerEntry
from keval.store.run import Run, find_run
from keval.store.serialization import to_plain
from keval_analysis.findings.draws import draws_file
from keval_analysis.scorer_names import named_scorers
from keval_report.terminal.console import data_console

if TYPE_CHECKING:
    from keval_analysis.question_review import QuestionEntry, QuestionFile

_SEEDS = 2**31 - 1
_SHOWN = 4
"""Lines that are shown of a result, or of the passage that says the answer."""


@click.command("review")
@click.argument("config", metavar="[RUN|CONFIG]", required=False)
@click.option("--sample", type=click.IntRange(min=1), metavar="N", help="Draw N answers of RUN for people to label.")
@click.option("--metric", metavar="RUBRIC", help="With --sample: spread them over this rubric's levels; RUBRIC@JUDGE.")
@click.option("--seed", type=click.IntRange(0, _SEEDS), metavar="N", help="With --sample: what the draw depends on.")
@click.option("--questions", is_flag=True, help="Show the questions of CONFIG that nobody has accepted yet, or decide.")
@click.option("--accept", multiple=True, metavar="ID", help="Accept this question. Repeatable.")
@click.option("--reject", multiple=True, metavar="ID", help="Reject this question. Repeatable.")
@click.option("--accept-all", is_flag=True, help="Accept all questions that wait, but for those to reject.")
@results_option
@json_option
def command(
    *,
    config: str | None,
    sample: int | None,
    metric: str | None,
    seed: int | None,
    questions: bool,
    accept: tuple[str, ...],
    reject: tuple[str, ...],
    accept_all: bool,
    output_dir: Path,
    as_json: bool,
) -> None:
    """Draw answers of RUN for people to label, or decide on the questions of CONFIG that `keval generate` has made.

    With --sample, whole questions are drawn at random, each in every arm, and kept in the run. `keval view` shows these
    answers for review.

    With --questions, each question that waits is shown with what proves its golden answer. --accept, --reject and
    --accept-all decide, as does `keval view --questions CONFIG` in the browser, where texts can be changed, too. `keval
    run` asks accepted questions only; rejected ones stay in the dataset, so that they are not made again.
    """
    if (sample is not None) == questions:
        raise click.UsageError("give --sample N for answers of a run, or --questions for those of a config")
    if sample is not None:
        if config is None:
            raise click.UsageError("Missing argument 'RUN'; `latest` is the newest")
        _draw(find_run(config, output_dir), sample, metric, seed, as_json=as_json)
    else:
        _decide_on_questions(Path(config) if config else None, accept, reject, accept_all=accept_all, as_json=as_json)


def _draw(run: Run, count: int, metric: str | None, seed: int | None, *, as_json: bool) -> None:
    """Draw answers, keep the draw in the run, and print it."""
    from keval_analysis.labels.drawing import draw_answers
    from keval_report.reviews import print_draw

    scorer = _scorer(run, metric)
    at = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    draw = draw_answers(run, scorer, count, secrets.randbelow(_SEEDS) if seed is None else seed, at)
    draws_file(run.path).append([draw])
    if as_json:
        print_json({"run": str(run.path), "draw": to_plain(draw)})
    else:
        print_draw(run, draw, count, data_console())


def _scorer(run: Run, metric: str | None) -> ScorerEntry:
    """Return the rubric and judge that a draw is for: those named, or the first, a primary one before others.

    Raises RunError: there is none.
    """
    rubrics = run.manifest.rubrics
    judged = [each for each in run.manifest.scorers if each.rubric and rubrics[each.rubric].kind == "levels"]
    if not judged:
        raise RunError(f"{run.path} has no judge that gives levels, as people do; add one, and `keval score` the run")
    if metric is not None:
        named = named_scorers([each for each in run.manifest.scorers if each.rubric], metric)
        if found := next((each for each in named if each in judged), None):
            return found
        known = ", ".join(dict.fromkeys(each.metric for each in judged))
        raise RunError(f"people give levels, and {named[0].metric!r} is scored without: draw by one of {known}")
    return next((entry for entry in judged if entry.metric in run.manifest.primary), judged[0])


def _decide_on_questions(
    config: Path | None, accept: Sequence[str], reject: Sequence[str], *, accept_all: bool, as_json: bool
) -> None:
    from keval_analysis.question_review import QuestionFile  # it imports what `--help` does not need

    config = config_here(config)
    file = QuestionFile.of(read_config(config))
    waiting = file.waiting()
    if accept or reject or accept_all:
        _decide(file, waiting, accept, reject, accept_all=accept_all)
    elif not as_json:
        for number, entry in enumerate(waiting, start=1):
            _show(entry, f"{number} of {len(waiting)}")
    left = file.waiting()
    if as_json:
        print_json([attrs.asdict(entry) for entry in left])
    else:
        named = shlex.quote(str(config))
        decide = f"keval view --questions {named}, or --accept ID, --reject ID, --accept-all"
        to_decide = f"{counted(len(left), 'question')} still to decide on; next: {decide}"
        tell(to_decide if left else f"none left; next: keval run {named}")


def _decide(
    file: QuestionFile,
    waiting: Sequence[QuestionEntry],
    accept: Sequence[str],
    reject: Sequence[str],
    *,
    accept_all: bool,
) -> None:
    """Carry out what flags say. Raises ConfigError: no question with such an id waits, or one is to be both."""
    by_id = {entry.id: entry for entry in waiting}
    for flag, names in (("--accept", accept), ("--reject", reject)):
        for name in names:
            if name not in by_id:
                raise ConfigError(f"{flag} {name}: no question with this id waits{suggestion(name, by_id)}")
    if both := {*accept} & {*reject}:
        raise ConfigError(f"--reject {min(both)}: --accept names it, too; decide for one")
    file.reject(by_id[name] for name in reject)
    # Read anew, as those that were just rejected wait no longer.
    accepted = [entry for entry in file.waiting() if entry.id in by_id] if accept_all else [by_id[n] for n in accept]
    file.accept(accepted)


def _show(entry: QuestionEntry, place: str) -> None:
    """Print a question with its golden answer and the calls that prove it."""
    console = data_console()
    by = f", by {entry.generated_by}" if entry.generated_by else ""
    console.print(safe(f"\n{place}: {entry.id}{by}", "dim"), soft_wrap=True)
    console.print(safe(entry.question, "bold"), soft_wrap=True)
    told = "golden answer, as the tools cannot tell" if entry.unanswerable else "golden answer"
    console.print(safe(f"{told}: {entry.answer or 'none'}"), soft_wrap=True)
    if entry.expect:
        console.print(safe(f"expected: {entry.expect}"), soft_wrap=True)
    for call in entry.proof:
        console.print(safe(f"  {call.tool} {json.dumps(call.arguments, ensure_ascii=False)}", "cyan"), soft_wrap=True)
        lines = (call.evidence or call.result).splitlines()
        for line in [*lines[:_SHOWN], *(["…"] if len(lines) > _SHOWN else [])]:
            console.print(safe(f"    {line}", "" if call.evidence else "dim"), soft_wrap=True)
