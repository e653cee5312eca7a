"""What the commands that run or score share: their environment, what they print last, and exit codes."""

from __future__ import annotations

import gc
import os
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from keval.cli.console import message_console, safe
from keval.cli.display import Progress, display
from keval.cli.interruption import Interruption, still_at_work
from keval.cli.messages import log_as_json, tell
from keval.cli.options import Detail
from keval.config.evaluation import Evaluation
from keval.errors import OutageError, typed
from keval.execute.admission import Stop
from keval.execute.bringup.resources import reach_loopback
from keval.redaction import MARK
from keval.run.conclusion import Outcome, Summary
from keval.store.run import Run

if TYPE_CHECKING:  # it imports what a report does not need
    from keval.run.active_run import Watchers

T = TypeVar("T")

FAILED_GATE = 1
_CODES: Mapping[Outcome, int] = {"passed": 0, "gate failed": FAILED_GATE, "incomplete": 3}


def run_to_end(work: Coroutine[Any, Any, T], interruption: Interruption | None = None, *, beats: bool = True) -> T:
    """Run the asynchronous part of a command, which says from time to time that it goes on if it `beats`.

    Raises KeyboardInterrupt for Ctrl-C, SIGTERM and SIGHUP.
    """
    # The gateway and the tap listen on loopback, and SDKs would ask the proxy of the environment for them.
    reach_loopback(os.environ)
    _freeze()
    return (interruption or Interruption(beat=still_at_work if beats else lambda: None)).run(work)


# Once in a process: another freeze would keep the garbage of earlier commands for good, with its open files.
@cache
def _freeze() -> None:
    """Keep collections from looking at modules, which stay loaded."""
    gc.freeze()


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
        # One that was refused from the start has nothing to go on with.
        if progress.directory is None or not (progress.finished or str(error).endswith(OutageError.NOT_RUN)):
            raise
        kept = f"{'finished trials are' if progress.finished else 'the run is'} in {progress.directory}"
        raise OutageError(f"{error}; {kept}, which `{typed('resume', progress.directory)}` continues then") from error
    except KeyboardInterrupt:
        last_words()
        raise SystemExit(130) from None


def prepared(evaluation: Evaluation) -> Evaluation:
    """Return an evaluation with what the keys of packages add to it, for which servers may be started.

    Raises ConfigError and PreflightError.
    """
    for section in evaluation.sections:
        prepare = getattr(section, "preparation", None)
        if prepare is not None and (preparation := prepare(evaluation)) is not None:
            evaluation = run_to_end(preparation)
    return evaluation


def log_watchers(log_format: str) -> Watchers:
    """Return the hook plugins that write the log, and turn to JSON what is said from now on if the log is JSON."""
    if log_format != "json":
        return []
    log_as_json()
    return [("keval/log", display().event_log())]


def tell_replaced(found: Counter[str], *, quiet: bool) -> None:
    """Tell which secrets were replaced in the files of a run, because scorers read what is written there."""
    for name, count in found.items():
        told = f"note: {name} was replaced by {MARK} in {count} lines of the run, so scorers see {MARK} there"
        remedy = "; add it to `public:` if it is not a secret" if name.startswith("${") else ""
        message_console(quiet=quiet).print(safe(told + remedy, "yellow"), soft_wrap=True)


def exit_code(summary: Summary, *, strict: bool = False) -> int:
    """Return 1 if a gate failed; else 3 unless all was answered and scored; else 1 if `strict` and one is undecided."""
    return _CODES[summary.outcome(strict=strict)]


def finish(
    run: Run, summary: Summary, given: Mapping[str, Any], *, as_json: bool, detail: Detail, quiet: bool
) -> NoReturn:
    """Print what was found in a run, and exit with its code; `given` are the options of packages."""
    code = exit_code(summary, strict=bool(given.get("strict")))
    display().show_end(run, summary, code, as_json=as_json, detail=detail, quiet=quiet)
    raise SystemExit(code)
