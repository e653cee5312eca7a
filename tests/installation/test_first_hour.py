"""The first hour of somebody with a server of their own, typed into a terminal, with a clock.

`pytest -s` shows how long each step took.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import pytest

from tests.installation.conftest import ROOT, Newcomer
from tests.installation.terminal import Terminal
from tests.viewing import CHROMIUM, chromium, serious, too_wide

pytestmark = [
    pytest.mark.installation,
    pytest.mark.skipif(shutil.which("tmux") is None, reason="there is no tmux; Debian's package `tmux` has it"),
]

# Tools without hints, of which one takes what another returns.
SERVER = """
from stdio_server import Tool, ToolFailedError, serve, text

TUGS = {"Grindle": "Marlin", "Ferrowick": "Otter", "Skarholm": "Gannet", "Pellan": "Wigeon", "Ostrand": "Merlin"}
PULLS = {"Marlin": 45, "Otter": 62, "Gannet": 38, "Wigeon": 51, "Merlin": 70}
DEPTHS = {"Grindle": 9.5, "Ferrowick": 6, "Skarholm": 11, "Pellan": 7.5, "Ostrand": 14}

def known(table, given, what):
    if given not in table:
        raise ToolFailedError(f"no {what} {given!r}; there are: {', '.join(table)}")
    return table[given]

def of(name):
    return {name: {"type": "string"}}, (name,)

tools = {
    "list_harbours": Tool(lambda given, meta: text(", ".join(TUGS)), {}, (), "List all harbours."),
    "harbour_depth": Tool(
        lambda given, meta: text(f"{given['name']} is {known(DEPTHS, given['name'], 'harbour')} m deep."),
        *of("name"), "Tell the depth of a harbour.",
    ),
    "harbour_tug": Tool(
        lambda given, meta: text(f"The tug of {given['name']} is the {known(TUGS, given['name'], 'harbour')}."),
        *of("name"), "Tell which tug a harbour has.",
    ),
    "bollard_pull": Tool(
        lambda given, meta: text(f"The {given['tug']} pulls {known(PULLS, given['tug'], 'tug')} t."),
        *of("tug"), "Tell the bollard pull of a tug.",
    ),
}
serve("harbour", lambda: tools)
"""


def test_the_first_hour_with_a_server_of_ones_own(newcomer: Newcomer, clone: Path) -> None:
    newcomer.type(f"uv tool install {clone}")
    with Terminal.opened(newcomer.folder, newcomer.environ) as terminal:
        _first_hour(terminal, newcomer.folder)
    if CHROMIUM is not None:
        _look_at(newcomer.folder / "report.html")
    for typed, seconds in terminal.seconds.items():
        sys.stdout.write(f"{seconds:6.1f} s  {typed}\n")


def _first_hour(terminal: Terminal, folder: Path) -> None:
    shutil.copy(ROOT / "tests" / "stdio_server.py", folder)
    (folder / "harbour.py").write_text(SERVER, encoding="utf-8")
    (folder / ".gitignore").write_text("results/\n", encoding="utf-8")

    assert "did you mean 'init'" in terminal.run("keval innit")
    terminal.type("keval init", until=r"^> \[1\]")
    terminal.type("", until="Which server")
    terminal.type("python3 harbor.py", until="type it anew")
    terminal.type("python3 harbour.py", until="harbour has 4 tools.*\n(.*\n)*.*Which model")
    terminal.type("", until="Where are the questions")
    terminal.type("", until="May keval call them")
    initiated = terminal.run("y")
    assert "next  keval review eval.yaml --questions" in initiated
    assert (folder / ".gitignore").read_text(encoding="utf-8") == "results/\n"

    assert "2 questions of 2" in terminal.run("keval generate --allow-writes -n 2")
    terminal.run("keval review eval.yaml --questions --accept-all")
    found = terminal.run("keval run")
    assert re.search(r"completeness.*better", found)
    terminal.run("keval report latest --html report.html")
    assert "without" in terminal.run("keval run --ablate with_harbour")
    terminal.run("sed -i 's/Tell the depth of a harbour/How deep a harbour is, in metres/' harbour.py && keval run")
    *_, before, after = sorted((folder / "results").glob("*/*/"), key=lambda run: run.stat().st_mtime)
    changed = terminal.run(f"keval compare {before.name} {after.name}")
    assert "Tell the depth of a harbour. → How deep a harbour is, in metres." in " ".join(changed.split())


def _look_at(report: Path) -> None:
    """Look at a report as a wide page and as a narrow one: nothing is cut, and axe has nothing serious to say."""
    with chromium() as browser:
        for width in (1280, 390):
            page = browser.new_page(viewport={"width": width, "height": 800}, bypass_csp=True)
            page.goto(report.as_uri())
            assert not too_wide(page)
            assert [] == serious(page)
