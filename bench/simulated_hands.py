"""What the simulated model gets out of real MCP servers: twenty of the registries, five questions with answers each.

    uv run python bench/simulated_hands.py [--folder DIR] [--half NAME] [--check] [--generate] [--json] [NAME…]

Each server is installed from npm or PyPI into an environment of its own below DIR, which is kept if it is given, and is
given data of its own: files, and the calls of `SERVERS` and of bench/real_servers.py. The agent `openai` with
`simulated/any` is then asked the questions of `simulated_hands/*.jsonl`. An answer is right if it holds all golden
values; `a|b` is either. Printed are a line for each server, and the sum of each half. Whoever made the simulated model
has looked at both halves.

`--half held-back`, `unseen` and `unseen-again` ask ten servers more each, which no other set has. Their questions are
by somebody who has not read the simulated model's code nor the other questions, and each set was put to it once, on 30
November 2026, before anybody looked at a failure: 27, 26 and 23 of 50 were right. That is what the model does with
servers that nobody has looked at. The failures were looked at since, and are no such figure any more.

`--check` asks no model: it makes the calls that are written beside each question, whose results must hold the golden
values. `--generate` tells how many of twelve questions `keval generate` makes for each server.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import attrs
from held_back_servers import HELD_BACK, SECOND_HELD_BACK, THIRD_HELD_BACK
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from real_servers import KEVAL, SERVERS, Filled, Server, install, write_files

HALVES = Path(__file__).with_name("simulated_hands")
SHIPS = (
    ("Marigold", "ferry", 412, "Tarnholm", 1998),
    ("Old Heron", "trawler", 57, "Skerrywick", 1974),
    ("Lady Brine", "ferry", 388, "Skerrywick", 2006),
    ("Kestrel", "tug", 31, "Tarnholm", 2011),
)
_PAGE = """<html><head><title>Tide table</title></head><body><h1>Tide table of Skerrywick</h1>
<p>High water is at 04:37 and at 17:02. The tidal range is 3.8 metres.</p>
<p>The harbour master is Ottoline Vance, on channel 14.</p>
<table><tr><th>Berth</th><th>Depth</th></tr><tr><td>North quay</td><td>6.4 m</td></tr>
<tr><td>South quay</td><td>4.1 m</td></tr></table><p>The fuel dock closes at 19:30.</p></body></html>
"""


def _pdf(*lines: str) -> str:
    """Return a document of one page, whose table of objects readers make anew."""
    text = "BT /F1 14 Tf 20 TL 72 720 Td " + " ".join(f"({line}) Tj T*" for line in lines) + " ET"
    objects = (
        "<</Type/Catalog/Pages 2 0 R>>",
        "<</Type/Pages/Kids[3 0 R]/Count 1>>",
        "<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
        f"<</Length {len(text)}>>\nstream\n{text}\nendstream",
        "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    )
    body = "".join(f"{number} 0 obj\n{each}\nendobj\n" for number, each in enumerate(objects, 1))
    return f"%PDF-1.4\n{body}trailer\n<</Size 6/Root 1 0 R>>\n%%EOF\n"


_COLUMNS = "name TEXT, kind TEXT, tons INTEGER, harbour TEXT, built INTEGER"
_ROWS = ", ".join(str(ship) for ship in SHIPS)
_OWN = {server.name: server for server in SERVERS}
_GIT = {"GIT_AUTHOR_NAME": "Ottoline Vance", "GIT_AUTHOR_EMAIL": "o@vance.example"}
_GIT |= {"GIT_COMMITTER_NAME": "Ottoline Vance", "GIT_COMMITTER_EMAIL": "o@vance.example"}
_AT = {"repo_path": "{folder}"}
_BOOK = "{folder}/fleet.xlsx"
_WORD = "{folder}/statutes.docx"
HANDS: tuple[Server, ...] = (
    attrs.evolve(_OWN["everything"], calls=()),
    attrs.evolve(_OWN["time"], calls=()),
    attrs.evolve(
        _OWN["git"],
        files={".git": "", "tides.md": "High water: 04:37\n", "berths.txt": "North quay\n"},
        env=_GIT,
        calls=(
            ("git_add", {**_AT, "files": ["tides.md"]}),
            ("git_commit", {**_AT, "message": "Add the tide table"}),
            ("git_create_branch", {**_AT, "branch_name": "winter-timetable"}),
            ("git_add", {**_AT, "files": ["berths.txt"]}),
            ("git_commit", {**_AT, "message": "List the berths of the north quay"}),
        ),
    ),
    attrs.evolve(
        _OWN["filesystem"],
        calls=(),
        files={
            "ferry.txt": "The ferry Marigold leaves Tarnholm at 07:15.\nA return ticket costs 18.40 crowns.\n",
            "notes/crew.md": "# Crew\n\n- Captain: Ottoline Vance\n- Engineer: Bram Sollis\n",
            "notes/log.csv": "day,passengers\n2026-03-01,212\n2026-03-02,187\n",
        },
    ),
    attrs.evolve(
        _OWN["memory"],
        calls=(
            ("create_entities", {"entities": [
                {"name": "Ottoline Vance", "entityType": "person",
                 "observations": ["harbour master of Skerrywick", "speaks Norwegian", "born in 1961"]},
                {"name": "Marigold", "entityType": "ship", "observations": ["carries 412 passengers", "yellow"]},
                {"name": "Lantern Society", "entityType": "organisation", "observations": ["meets on Thursdays"]},
            ]}),
            ("create_relations", {"relations": [
                {"from": "Ottoline Vance", "to": "Marigold", "relationType": "owns"},
                {"from": "Ottoline Vance", "to": "Lantern Society", "relationType": "presides over"},
            ]}),
        ),
    ),
    Server("calculator", "pypi:mcp-server-calculator", ("mcp-server-calculator",), ()),
    Server("unit-converter", "pypi:unit-converter-mcp", ("unit-converter-mcp",), ()),
    Server("subnet", "pypi:subnet-calculator-mcp mcp<2", ("subnet-calculator-mcp",), ()),
    Server(
        "mcp-sqlite", "npm:mcp-sqlite", ("mcp-sqlite-server", "{folder}/fleet.db"),
        (
            ("query", {"sql": f"CREATE TABLE ships ({_COLUMNS})"}),
            ("query", {"sql": f"INSERT INTO ships VALUES {_ROWS}"}),
            ("query", {"sql": "CREATE TABLE harbours (name TEXT, berths INTEGER, depth REAL)"}),
            ("query", {"sql": "INSERT INTO harbours VALUES ('Tarnholm', 14, 6.4), ('Skerrywick', 9, 4.1)"}),
        ),
    ),
    attrs.evolve(
        _OWN["excel"],
        calls=(
            ("create_workbook", {"path": _BOOK, "sheets": ["Ships", "Fees"]}),
            ("write_range", {"path": _BOOK, "sheet": "Ships", "at": "A1",
                             "rows": [["name", "kind", "tons", "harbour", "built"], *map(list, SHIPS)]}),
            ("write_range", {"path": _BOOK, "sheet": "Fees", "at": "A1",
                             "rows": [["service", "crowns"], ["mooring", 42.5], ["water", 6], ["waste", 11.25]]}),
        ),
    ),
    attrs.evolve(
        _OWN["sqlite"],
        calls=(
            ("create_table", {"query": f"CREATE TABLE ships ({_COLUMNS})"}),
            ("write_query", {"query": f"INSERT INTO ships VALUES {_ROWS}"}),
            ("create_table", {"query": "CREATE TABLE lighthouses (name TEXT, height INTEGER)"}),
            ("write_query", {"query": "INSERT INTO lighthouses VALUES ('Gull Rock', 47), ('Farrow Point', 29)"}),
        ),
    ),
    Server("gnu-units", "pypi:mcp-gnu-units", ("mcp-gnu-units",), ()),
    Server("calc", "npm:@coo-quack/calc-mcp", ("calc-mcp",), ()),
    Server("docs", "npm:@voltagent/docs-mcp", ("voltagent-docs-mcp",), ()),
    Server(
        "fetch", "pypi:mcp-server-fetch", ("mcp-server-fetch", "--ignore-robots-txt", "--allow-private-ips"), (),
        files={"tides.html": _PAGE},
    ),
    Server(
        "pdf", "npm:@sylphx/pdf-reader-mcp", ("pdf-reader-mcp",), (),
        files={"charter.pdf": _pdf("Charter of the Lantern Society", "Founded in 1887 by Ottoline Vance.",
                                   "The yearly fee is 24 crowns.", "Members meet at Farrow Point on Thursdays.",
                                   "The library has 1312 volumes.")},
    ),
    Server("color", "pypi:color-mcp-server mcp<2", ("color-mcp-server",), ()),
    attrs.evolve(
        _OWN["motherduck"],
        command=("mcp-server-motherduck", "--db-path", "{folder}/fleet.duckdb", "--read-write"),
        calls=(
            ("execute_query", {"sql": f"CREATE TABLE ships ({_COLUMNS})"}),
            ("execute_query", {"sql": f"INSERT INTO ships VALUES {_ROWS}"}),
            ("execute_query", {"sql": "CREATE TABLE tides (day DATE, high_water TIME, metres DOUBLE)"}),
            ("execute_query", {"sql": "INSERT INTO tides VALUES ('2026-3-1', '04:37', 3.8), ('2026-3-2', '05:21', 3)"}),
        ),
    ),
    attrs.evolve(_OWN["markitdown"], calls=(), files={"tides.html": _PAGE}),
    attrs.evolve(
        _OWN["word"],
        calls=(
            ("create_document", {"filename": _WORD, "title": "Statutes", "author": "Bram Sollis"}),
            ("add_heading", {"filename": _WORD, "text": "Membership", "level": 1}),
            ("add_paragraph", {"filename": _WORD, "text": "A member pays 24 crowns a year."}),
            ("add_heading", {"filename": _WORD, "text": "Meetings", "level": 1}),
            ("add_paragraph", {"filename": _WORD, "text": "The society meets at Farrow Point on Thursdays at 18:30."}),
            ("add_paragraph", {"filename": _WORD, "text": "A quorum is eleven members."}),
        ),
    ),
)  # fmt: skip


@attrs.frozen
class Question:
    """A question to a server, with the values of its golden answer and the calls whose results have them."""

    server: str
    question: str
    golden: Sequence[str]
    calls: Sequence[tuple[str, Mapping[str, Any]]]

    def is_answered_by(self, text: str) -> bool:
        """Return whether a text has every golden value, as a whole word or number."""
        plain = _plain(text)
        return all(any(_holds(plain, _plain(either)) for either in value.split("|")) for value in self.golden)


def _plain(text: str) -> str:
    grouped = r"(?<![\w.,-])\d{1,3}(?:[,\u202f]\d{3})+(?![\d,])"  # 1,234
    return re.sub(grouped, lambda found: re.sub(r"\D", "", found[0]), " ".join(text.casefold().split()))


def _holds(text: str, value: str) -> bool:
    # 4.1 is not in 14.12, but 412 is in 412.0, and 11:15 in 2026-01-01T11:15.
    before = r"(?<![\d.])" if value[0].isdigit() else r"(?<!\w)"
    return re.search(rf"{before}{re.escape(value)}(?!\w|\.\d*[1-9])", text) is not None


@attrs.frozen
class Found:
    """What became of the questions of one server: `right` of them were answered, and `wrong` has what was said."""

    server: str
    half: str
    right: int
    asked: int
    wrong: Sequence[Mapping[str, Any]] = ()
    error: str = ""


def questions(half: str) -> list[Question]:
    """Return the questions of one half."""
    lines = (HALVES / f"{half.replace('-', '_')}.jsonl").read_text(encoding="utf-8").splitlines()
    return [Question(**json.loads(line)) for line in lines]


@contextmanager
def prepared(server: Server, folder: Path) -> Iterator[Filled]:
    """Make the data of a server in a folder that is the same each time, and serve the folder on loopback."""
    home = folder / "data" / server.name
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    write_files(server, home)
    web = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(home)))
    threading.Thread(target=web.serve_forever, daemon=True).start()
    try:
        filled = Filled(server, install(server, folder), str(home), web.server_port)
        asyncio.run(calls_made(filled, filled.calls))
        yield filled
    finally:
        web.shutdown()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing."""


async def calls_made(filled: Filled, calls: Sequence[tuple[str, Mapping[str, Any]]]) -> str:
    """Make calls and return their results as a text. Raises RuntimeError: one was an error.

    `{session_id}` in an argument stands for what an earlier result gives under this name, and so for any other name.
    """
    command, *args = filled.command
    target = StdioServerParameters(command=command, args=args, env=filled.environ, cwd=filled.folder)
    texts: list[str] = []
    client = Client(stdio_client(target, errlog=subprocess.DEVNULL), mode="legacy")  # type: ignore[arg-type] # as Popen takes it
    async with asyncio.timeout(120), client:
        for name, arguments in calls:
            given = re.findall(r'"(\w+)": ?"([^"]+)"', "\n".join(texts))
            real = json.dumps(arguments)
            for key, value in given:
                real = real.replace(f"{{{key}}}", value)
            result = await client.call_tool(name, json.loads(real))
            texts += [part.text for part in result.content if part.type == "text"]
            if result.is_error:
                raise RuntimeError(f"{name}: {texts[-1:]}")
    return "\n".join(texts)


def checked(filled: Filled, asked: Sequence[Question]) -> list[dict[str, Any]]:
    """Return the questions whose calls do not give their golden values."""
    wrong: list[dict[str, Any]] = []
    for each in asked:
        try:
            text = asyncio.run(calls_made(filled, each.calls))
        except Exception as error:  # noqa: BLE001 - said beside the question
            text = repr(error)
        if not each.is_answered_by(text):
            wrong.append({"question": each.question, "golden": each.golden, "answer": text[:600]})
    return wrong


def _write_config(filled: Filled, dataset: str) -> Path:
    """Write a config with the server beside its data, and return its folder."""
    home = Path(filled.folder).with_name(f"{filled.server.name}-keval")
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir()
    config = {
        "dataset": {"path": dataset},
        "agents": {"openai": {"type": "openai", "model": "simulated/any"}},
        "contexts": {"real": filled.context(tap=True)},
        "conditions": {"with_server": {"contexts": ["real"]}},
        "metrics": ["basic/latency"],
        "execution": {"max_concurrent": 1},  # some lock their data, and each trial has a process of its own
    }
    (home / "eval.yaml").write_text(json.dumps(config), encoding="utf-8")
    return home


def _keval(home: Path, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*KEVAL, *args], cwd=home, capture_output=True, text=True, check=False)


def run(filled: Filled, asked: Sequence[Question]) -> list[dict[str, Any]]:
    """Ask the simulated model in a run of keval, and return the questions with a wrong answer, and what was called."""
    home = _write_config(filled, "questions.jsonl")
    records = [{"id": f"q{number}", "question": each.question} for number, each in enumerate(asked)]
    (home / "questions.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in records), encoding="utf-8")
    done = _keval(home, "run", "eval.yaml")
    if done.returncode not in (0, 3):
        raise RuntimeError(done.stderr[-800:])
    (path,) = home.glob("results/*/*/trials.jsonl")
    trials = {trial["sample"]: trial for trial in map(json.loads, path.read_text(encoding="utf-8").splitlines())}
    wrong: list[dict[str, Any]] = []
    for number, each in enumerate(asked):
        transcript = trials[f"q{number}"]["transcript"] or {"messages": [], "tool_calls": []}
        said = [part["text"] for part in transcript["messages"] if part["role"] == "assistant"][-1:] or [""]
        if not each.is_answered_by(said[0]):
            calls = [
                [call["name"], call["arguments"], call["error"] or call["result"]] for call in transcript["tool_calls"]
            ]
            wrong.append({"question": each.question, "golden": each.golden, "answer": said[0], "calls": calls})
    return wrong


def generated(filled: Filled) -> tuple[int, str]:
    """Return how many of twelve questions `keval generate` makes, and what it says."""
    home = _write_config(filled, "generated.jsonl")
    done = _keval(
        home, "generate", "eval.yaml", "-n", "12", "--allow-writes", "--to", "generated.jsonl", "--json",
        "--about", f"Everything is in {filled.folder}, and at http://127.0.0.1:{filled.port}/tides.html",
    )  # fmt: skip
    if not done.stdout.startswith("{"):
        return 0, done.stderr[-800:]
    summary = json.loads(done.stdout)
    return len(summary["made"]), json.dumps({key: summary[key] for key in ("dropped", "unused_tools", "calls")})


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--half", choices=("first", "second", "held-back", "unseen", "unseen-again"))
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--generate", action="store_true")
    parser.add_argument("--json", action="store_true", dest="as_json")
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    folder = (given.folder or Path(tempfile.mkdtemp(prefix="keval-hands-"))).resolve()
    known = {server.name: server for server in (*HANDS, *HELD_BACK, *SECOND_HELD_BACK, *THIRD_HELD_BACK)}
    found: list[Found] = []
    for half in [given.half] if given.half else ["first", "second"]:
        every = questions(half)
        for name in dict.fromkeys(each.server for each in every):
            if given.names and name not in given.names:
                continue
            asked = [each for each in every if each.server == name]
            try:
                with prepared(known[name], folder) as filled:
                    real = [Question(**filled.filled_in(attrs.asdict(each))) for each in asked]
                    if given.generate:
                        made, told = generated(filled)
                        found.append(Found(name, half, made, 12, error=told))
                    else:
                        wrong = checked(filled, real) if given.check else run(filled, real)
                        found.append(Found(name, half, len(real) - len(wrong), len(real), wrong))
            except Exception as error:  # noqa: BLE001 - the others are tried
                found.append(Found(name, half, 0, len(asked), error=repr(error)[:1000]))
            each = found[-1]
            print(f"{half:12} {name:20} {each.right}/{each.asked}  {each.error[:300]}", file=sys.stderr, flush=True)
        these = [each for each in found if each.half == half]
        right, sum_asked = sum(each.right for each in these), sum(each.asked for each in these)
        print(f"{half:12} {'all':20} {right}/{sum_asked}", file=sys.stderr, flush=True)
    if given.as_json:
        print(json.dumps([attrs.asdict(each) for each in found], indent=1, ensure_ascii=False))
    if given.folder is None:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
