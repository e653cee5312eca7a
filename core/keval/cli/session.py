"""What the commands that run or score share: their environment, what they print last, and exit codes."""

from __future__ import annotations

import gc
import os
import shlex
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from rich.console import Console

from keval.cli.console import data_console, message_console, print_json, safe
from keval.cli.interruption import Interruption, still_at_work
from keval.cli.messages import log_as_json, logs_json, tell
from keval.cli.options import Detail
from keval.config.evaluation import Evaluation
from keval.errors import OutageError
from keval.execute.admission import Stop
from keval.execute.bringup.resources import reach_loopback
from keval.records.cassettes import REPLAY_MISS
from keval.redaction import MARK
from keval.store.run import Run
from keval.store.seal import SealCheck
from keval.store.serialization import to_plain
from keval_analysis.claims import unverified_claims
from keval_analysis.findings.summary import Summary
from keval_analysis.gates import RunOutcome, outcome_of, were_all_made
from keval_report.gates import gate_lines, unmet_lines
from keval_report.origin import decided_on
from keval_report.remedies import remedy
from keval_report.statement import Level
from keval_report.terminal.overview import print_report
from keval_report.terminal.progress import EventLog
from keval_report.words import joined, run_place

if TYPE_CHECKING:  # it imports what a report does not need
    from keval.run.active_run import Watchers
    from keval_report.terminal.progress import Progress

T = TypeVar("T")

_FAILED_GATE = 1
_CODES: Mapping[RunOutcome, int] = {"passed": 0, "gate failed": _FAILED_GATE, "incomplete": 3}


def run_to_end(work: Coroutine[Any, Any, T], interruption: Interruption | None = None, *, beats: bool = True) -> T:
    """Run the asynchronous part of a command, which says from time to time that it goes on if it `beats`.

    Raises KeyboardInterrupt for Ctrl-C, SIGTERM and SIGHUP.
    """
    reach_loopback(os.environ)
    if not gc.get_freeze_count():  # modules stay loaded, so collections need not look at them
        gc.freeze()
    return (interruption or Interruption(beat=still_at_work if beats else lambda: None)).run(work)


def carry_out(
    work: Coroutine[Any, Any, T],
    progress: Progress,
    interrupted: Callable[[], str],
    *,
    stop: Stop | None = None,
    grace: float = 0.0,
) -> T:
    """Run what runs or scores, and show its progress; if it is interrupted, print what goes on, and exit with 130.

    With a `stop`, trials in flight may finish for `grace` seconds.
    """

    def last_words() -> None:
        progress.stop()
        tell(interrupted())

    try:
        with progress:
            return run_to_end(work, Interruption(stop, grace, last_words if stop else None, progress.beat))
    except OutageError as error:
        if progress.finished and "keval resume" not in str(error):
            kept = f"finished trials are in {progress.directory}"
            raise OutageError(f"{error}; {kept}, which `keval resume {progress.directory}` continues then") from error
        raise
    except KeyboardInterrupt:
        last_words()
        raise SystemExit(130) from None


def ablated(evaluation: Evaluation) -> Evaluation:
    """Return an evaluation with the conditions that `ablate` adds; servers are started only if it names any.

    Raises ConfigError and PreflightError.
    """
    if not evaluation.header.ablate:
        return evaluation
    from keval_mcp.ablation import with_ablations  # imports what brings servers up

    return run_to_end(with_ablations(evaluation))


def log_watchers(log_format: str) -> Watchers:
    """Return the hook plugins that write the log, and turn to JSON what is said from now on if the log is JSON."""
    if log_format != "json":
        return []
    log_as_json()
    return [("keval/log", EventLog())]


def finish(
    run: Run,
    summary: Summary,
    *,
    as_json: bool,
    detail: Detail = "first",
    quiet: bool = False,
    under_way: bool = False,
    strict: bool = False,
) -> None:
    """Print a run's report and exit with its code; `detail` says how much of it, and `wide` is all of it, with tables.

    `under_way` says that a process is still writing to the run, and `strict` that an undecided gate fails.
    """
    code = exit_code(summary, strict=strict)
    messages = message_console(quiet=quiet and not code)
    if as_json:
        print_json(to_plain(summary))
    elif not quiet:
        level: Level = "first" if detail == "first" else "explained"
        claims = unverified_claims(run, summary) if level == "explained" else ()
        print_report(
            summary,
            data_console(),
            run.path,
            questions=run.manifest.dataset.samples,
            under_way=under_way,
            level=level,
            claims=claims,
            tables=detail == "wide",
        )
    if (as_json or quiet) and code == _FAILED_GATE:
        _print_verdicts(summary, messages)
    if quiet and not were_all_made(summary):
        failed = sum(arm.failed for arm in summary.trials)
        scores = sum(arm.failed + arm.missing for arm in summary.arms)
        unrun = summary.planned - sum(arm.trials for arm in summary.trials)
        left = f", {unrun} were not run" if unrun else ""
        left += f" ({summary.stopped})" if summary.stopped else ""
        messages.print(f"{failed} of {summary.planned} trials failed{left}, {scores} scores failed or are missing")
    messages.print(safe(run_place(run.path)), soft_wrap=True)
    if summary.replay is not None and summary.replay.misses == "fail" and (missed := _missed(run, summary)):
        messages.print(safe(missed), soft_wrap=True)
    if (as_json or quiet or logs_json()) and not under_way and (lacking := remedy(summary, run.path)):
        messages.print(safe(f"to {lacking.does}: `{shlex.join(lacking.command)}`"), soft_wrap=True)
    raise SystemExit(code)


def _print_verdicts(summary: Summary, console: Console) -> None:
    for line in (
        *gate_lines(summary.gates, console.width, "explained", decided_on(summary.replay)),
        *unmet_lines(summary.unmet, console.width, "explained"),
    ):
        console.print(line, soft_wrap=True)


def _missed(run: Run, summary: Summary) -> str:
    """Return the first thing that the recording of a replayed run does not have, whole, and what to do about it."""
    if any(REPLAY_MISS in kind for arm in summary.trials for kind in arm.failures):
        failed = ((trial.id, trial.failure) for trial in run.trials() if trial.failure is not None)
    elif any(REPLAY_MISS in kind for arm in summary.arms for kind in arm.failures):
        lines = run.scores()
        failed = ((f"{line.judge} of {line.trial}", line.failure) for line in lines if line.failure is not None)
    else:
        return ""
    ask = "`--replay-misses live` calls models and servers for requests that are not in the recording"
    first = next((f"{who}: {failure.message}" for who, failure in failed if failure.kind == REPLAY_MISS), "")
    return f"{first}\n{ask}"


def tell_replaced(found: Counter[str], *, quiet: bool) -> None:
    """Tell which secrets were replaced in the files of a run, because scorers read what is written there."""
    for name, count in found.items():
        told = f"note: {name} was replaced by {MARK} in {count} lines of the run, so scorers see {MARK} there"
        remedy = "; add it to `public:` if it is not a secret" if name.startswith("${") else ""
        message_console(quiet=quiet).print(safe(told + remedy, "yellow"), soft_wrap=True)


def tell_changed(*checks: SealCheck) -> None:
    """Tell on stderr which files of runs changed after these had ended, if any did."""
    for check in checks:
        if changed := check.changed():
            told = f"caution: {joined(changed)} of {run_place(check.run.path)} changed after the run ended"
            message_console().print(safe(told, "yellow"), soft_wrap=True)


def exit_code(summary: Summary, *, strict: bool = False) -> int:
    """Return 1 if a gate failed, or is undecided and that is `strict`; else 3 unless all was answered and scored."""
    return _CODES[outcome_of(summary, strict=strict)]
