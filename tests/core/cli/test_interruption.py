"""A Ctrl-C that comes between two phases of a run."""

from __future__ import annotations

import asyncio
import signal
import time

import pytest

from keval.cli.interruption import Interruption
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
