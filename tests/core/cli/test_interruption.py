"""What is told of a run that ends early: a Ctrl-C between two phases, and an outage."""

from __future__ import annotations

import asyncio
import signal
import time
from pathlib import Path

import pytest

from keval.cli.display import display
from keval.cli.interruption import Interruption
from keval.cli.session import carry_out
from keval.errors import OutageError
from keval.execute.admission import Stop


def test_a_ctrl_c_as_the_last_trial_ends_interrupts_what_follows(capsys: pytest.CaptureFixture[str]) -> None:
    stop = Stop()

    async def work() -> None:
        stop.in_flight = True
        signal.raise_signal(signal.SIGINT)
        deadline = time.monotonic() + 20
        while "stopping: " not in capsys.readouterr().err and time.monotonic() < deadline:
            time.sleep(0.01)  # noqa: ASYNC251 - the loop hears nothing meanwhile
        stop.in_flight = False
        await asyncio.wait_for(asyncio.Event().wait(), 20)

    with pytest.raises(KeyboardInterrupt):
        Interruption(stop, 10.0).run(work())


def test_an_outage_tells_how_to_go_on() -> None:
    progress = display().progress(2, quiet=True)
    progress.directory, progress.finished = Path("my results"), 1

    async def work() -> None:
        raise OutageError("it is down")

    with pytest.raises(OutageError) as caught:
        carry_out(work(), progress, str)

    told = "it is down; finished trials are in my results, which `keval resume 'my results'` continues then"
    assert told == str(caught.value)
