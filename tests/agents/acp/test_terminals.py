"""Terminals, as the protocol says that they behave."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest
from acp.exceptions import RequestError

from keval_acp import client
from keval_acp.client import Terminals
from tests.processes import children


@pytest.fixture
def terminals(tmp_path: Path) -> Terminals:
    return Terminals({"PATH": os.environ["PATH"], "MOOD": "fine"})


def test_a_command_has_its_arguments_its_folder_and_both_environments(terminals: Terminals, tmp_path: Path) -> None:
    async def scenario() -> tuple[int, str]:
        name = await terminals.create("sh", ["-c", 'echo "$MOOD $SKY" >&2; pwd -P'], {"SKY": "blue"}, tmp_path, None)
        code = await terminals.get(name).wait()
        output = terminals.output(name)
        await terminals.close()
        return code, output

    assert (0, f"fine blue\n{tmp_path}\n") == asyncio.run(scenario())


@pytest.mark.parametrize(
    ("command", "limit", "expected"),
    [("printf 'ab\\303\\266\\303\\266'", 3, "ö"), ("printf '\\200\\200\\200\\200\\200\\200'", 4, "\ufffd")],
)
def test_output_is_cut_at_its_beginning_between_characters(
    terminals: Terminals, tmp_path: Path, command: str, limit: int, expected: str
) -> None:
    async def scenario() -> tuple[str, bool]:
        name = await terminals.create(command, None, {}, tmp_path, limit)
        await terminals.get(name).wait()
        terminal = terminals.get(name)
        await terminals.close()
        return terminal.output, terminal.truncated

    assert (expected, True) == asyncio.run(scenario())


def test_a_command_that_is_killed_can_still_be_read_and_one_that_is_released_cannot(
    terminals: Terminals, tmp_path: Path
) -> None:
    async def scenario() -> tuple[str, set[str]]:
        before = children()
        name = await terminals.create("echo one; sleep 3600", None, {}, tmp_path, None)
        terminal = terminals.get(name)
        while not terminal.output:  # noqa: ASYNC110 - another process writes it
            await asyncio.sleep(0.01)
        await terminal.close()
        assert "one\n" == terminals.get(name).output
        await terminals.release(name)
        with pytest.raises(RequestError):
            terminals.get(name)
        return terminals.output(name), children() - before

    assert ("one\n", set()) == asyncio.run(asyncio.wait_for(scenario(), 30))


def test_terminals_that_are_asked_for_at_once_are_each_counted(
    terminals: Terminals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "_MOST_AT_ONCE", 2)

    async def scenario() -> tuple[list[Any], set[str]]:
        before = children()
        creating = (terminals.create("sleep 3600", None, {}, tmp_path, None) for _ in range(3))
        made = await asyncio.gather(*creating, return_exceptions=True)
        await terminals.close()
        return made, children() - before

    (*names, refused), left = asyncio.run(asyncio.wait_for(scenario(), 30))

    assert ["terminal-1", "terminal-2"] == names
    assert ("terminals", set()) == (refused.kind, left)
