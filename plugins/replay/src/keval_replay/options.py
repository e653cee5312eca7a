"""The options that record a run, and that replay one."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

import click

from keval.cli.call import CommandCall, CommandOptions, Planned
from keval.cli.messages import redactor

if TYPE_CHECKING:
    Misses = Literal["fail", "live"]


def _apply(call: CommandCall, *, record: bool, replay: str | None, replay_misses: Misses) -> None:
    if replay is not None and record:
        raise click.UsageError(
            "--replay calls no model or server that --record could record; --replay-misses live records by itself"
        )
    call.record = record
    if replay is not None:
        call.planned = functools.partial(_planned, replay=replay, misses=replay_misses)


@contextmanager
def _planned(call: CommandCall, *, replay: str, misses: Misses) -> Iterator[Planned]:
    from keval.run.select import Selection
    from keval.store.run import find_run
    from keval_replay.replay import replay_run
    from keval_replay.replay_plan import planned_replay

    recorded, selection = find_run(replay, call.root), call.selection or Selection()
    with planned_replay(call.config, selection, recorded, misses, redactor(), changed=call.changed) as (plan, played):
        yield Planned(plan, functools.partial(replay_run, played), "replay again")


run_options = CommandOptions(
    [
        click.option("--record", is_flag=True, help="Record the traffic with models and servers, for --replay."),
        click.option(
            "--replay",
            metavar="RUN",
            help="Replay the recording of RUN, and call no model and no server; without CONFIG, with the config of"
            " RUN.",
        ),
        click.option(
            "--replay-misses",
            type=click.Choice(["fail", "live"]),
            default="fail",
            show_default=True,
            help="What to do with a trial whose request is not in the recording.",
        ),
    ],
    _apply,
)


def _record(call: CommandCall, *, record: bool) -> None:
    call.record = record


_RECORD = "Record traffic from now on; a recorded run does so anyway."
resume_options = CommandOptions([click.option("--record", is_flag=True, help=_RECORD)], _record)
