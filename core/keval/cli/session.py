"""What the commands that run or score share: their environment, what they print last, and exit codes."""

from __future__ import annotations

import gc
import os
import shlex
from collections import Counter
from collections.abc import Coroutine, MutableMapping
from typing import TYPE_CHECKING, Any, TypeVar

from keval.cli.interruption import Interruption
from keval.redaction import MARK
from keval.report.console import data_console, message_console, print_json, safe
from keval.report.event_log import EventLog
from keval.report.overview import print_report
from keval.report.tables import print_tables
from keval.report.terminal import log_as_json
from keval.store.converter import to_plain
from keval.store.run import Run
from keval.summary import Summary

if TYPE_CHECKING:  # it imports what a report does not need
    from keval.pipeline import Watchers

__all__ = ["exit_code", "finish", "log_watchers", "run_to_end", "tell_replaced"]

T = TypeVar("T")

_LOOPBACK = ("127.0.0.1", "localhost")


def run_to_end(work: Coroutine[Any, Any, T], interruption: Interruption | None = None) -> T:
    """Run the asynchronous part of a command. Raises KeyboardInterrupt for Ctrl-C, SIGTERM and SIGHUP."""
    _bypass_proxy_on_loopback(os.environ)
    gc.freeze()  # modules stay loaded, so collections need not look at them
    return (interruption or Interruption()).run(work)


def log_watchers(log_format: str) -> Watchers:
    """Return the hook plugins that write the log, and turn to JSON what is said from now on if the log is JSON."""
    if log_format != "json":
        return []
    log_as_json()
    return [("keval/log", EventLog())]


def finish(
    run: Run, summary: Summary, *, as_json: bool, wide: bool = False, quiet: bool = False, under_way: bool = False
) -> None:
    """Print a run's summary, as tables if `wide`, and exit with its code.

    `under_way` says that a process is still writing to the run.
    """
    if as_json:
        print_json(to_plain(summary))
    elif wide and not quiet:
        print_tables(summary, data_console(), run.path, under_way=under_way)
    elif not quiet:
        questions = run.manifest.dataset.samples
        print_report(summary, data_console(), run.path, questions=questions, under_way=under_way)
    code = exit_code(summary)
    messages = message_console(quiet=quiet and not code)
    if quiet and code:
        failed = sum(arm.failed for arm in summary.trials)
        scores = sum(arm.failed + arm.missing for arm in summary.arms)
        unrun = summary.planned - sum(arm.trials for arm in summary.trials)
        left = f", {unrun} were never run" if unrun else ""
        left += f" ({summary.stopped})" if summary.stopped else ""
        messages.print(f"{failed} of {summary.planned} trials failed{left}, {scores} scores failed or are missing")
    messages.print(safe(str(run.path)), soft_wrap=True)
    if not under_way and (hint := _remedy(run, summary)):
        messages.print(safe(hint), soft_wrap=True)
    raise SystemExit(code)


def _remedy(run: Run, summary: Summary) -> str:
    """Return the command that makes what a run lacks; nothing for a run that is whole."""
    command = f"keval resume {shlex.quote(str(run.path))}"
    if sum(arm.trials for arm in summary.trials) < summary.planned:
        return f"`{command}` runs the trials that are left"
    if any(arm.failed for arm in summary.trials):
        return f"`{command} --retry-failed` runs the failed trials again"
    return ""


def tell_replaced(found: Counter[str], *, quiet: bool) -> None:
    """Tell which secrets were replaced in the files of a run, because scorers read what is written there."""
    for name, count in found.items():
        told = f"note: {name} was replaced by {MARK} in {count} lines of the run, and scorers read them so"
        remedy = "; add it to `public:` if it is no secret" if name.startswith("${") else ""
        message_console(quiet=quiet).print(safe(told + remedy, "yellow"), soft_wrap=True)


def exit_code(summary: Summary) -> int:
    """Return 0 when every trial was answered and scored, and no scorer failed; else 3."""
    failed = any(arm.failed for arm in summary.trials) or any(arm.failed for arm in summary.arms)
    unfinished = sum(arm.trials for arm in summary.trials) < summary.planned
    unscored = any(arm.missing for arm in summary.arms)
    return 3 if failed or unfinished or unscored else 0


def _bypass_proxy_on_loopback(environ: MutableMapping[str, str]) -> None:
    """Add loopback to the hosts that are reached without the environment's proxy.

    The gateway and the tap listen on loopback, and every SDK reads the proxy from the environment.
    """
    for name in ("NO_PROXY", "no_proxy"):
        hosts = [host for host in environ.get(name, "").split(",") if host]
        if "*" not in hosts:
            environ[name] = ",".join([*hosts, *(host for host in _LOOPBACK if host not in hosts)])
