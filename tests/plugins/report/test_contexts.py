"""What the servers of conditions differ in: read from the listings that a run keeps, on the terminal and the page."""

from __future__ import annotations

import hashlib
import json
import sys

from tests.conftest import Project
from tests.stdio_server import ENVIRONMENT

SERVER = f"""\
import sys
sys.path.append({ENVIRONMENT["PYTHONPATH"]!r})
from tests.stdio_server import Tool, serve, text
query = {{"query": {{"type": "string", "description": "What to look for."}}}}
search = Tool(lambda arguments, meta: text("7"), query, ("query",), "Finds <b>all</b> the pages.")
drop = Tool(lambda arguments, meta: text("7"), {{}}, (), "Drops it.")
serve("pages", lambda: {{"search": search, "drop": drop}})
"""
CONFIG = f"""
dataset: {{path: questions.jsonl}}
agents: {{scripted: {{}}}}
contexts:
  pages: {{type: stdio, command: {sys.executable}, args: [server.py]}}
  more: {{type: stdio, command: {sys.executable}, args: [server.py], rename: {{search: look, drop: lose}}}}
  terse:
    from: pages
    describe: {{search: {{description: "Finds <b>some</b> pages.", parameters: {{query: Words.}}}}}}
  renamed: {{from: terse, rename: {{search: find}}, without: [drop], results: {{fixed: "No."}}}}
conditions:
  with_pages: {{contexts: [pages]}}
  with_terse: {{contexts: [terse]}}
  with_renamed: {{contexts: [renamed, more]}}
  bare: {{}}
metrics: [double/length]
"""


def test_differences_are_told_text_by_text(project: Project) -> None:
    project.write(eval_yaml=CONFIG, server_py=SERVER, questions_jsonl='{"id": "a", "question": "How?"}\n')
    run = project.keval("run", "eval.yaml", "--json")
    path = str(project.run_directory())

    shown = project.keval("show", path, "--contexts")
    data = project.keval("show", path, "--contexts", "--json").data
    markdown = project.keval("report", path, "--markdown", "--html", "page.html").stdout

    assert 0 == run.code
    assert (
        """\
with_terse: pages against with_pages
  search has a different description (about 11 → 10 tokens)
    - Finds <b>all</b> the pages.
    + Finds <b>some</b> pages.
  query of search has a different description (about 5 → 2 tokens)
    - What to look for.
    + Words.

with_renamed: pages against with_pages
  every result is 'No.'
  search is named find
  find has a different description (about 11 → 10 tokens)
    - Finds <b>all</b> the pages.
    + Finds <b>some</b> pages.
  query of find has a different description (about 5 → 2 tokens)
    - What to look for.
    + Words.
  drop is removed

with_renamed: more is added
  tools: look, lose

with_renamed: more against what the server says
  search is named look
  drop is named lose

bare: pages is left out
  tools: search, drop
"""
        == shown.stdout
    )
    assert [("with_terse", "with_pages"), ("with_renamed", "with_pages")] == [
        (each["condition"], each["against"]) for each in data[:2]
    ]
    assert "- with\\_terse, pages against with\\_pages: search has a different description" in markdown
    page = (project.root / "page.html").read_text(encoding="utf-8")
    assert "Finds <del>&lt;b&gt;all&lt;/b&gt; the</del> <ins>&lt;b&gt;some&lt;/b&gt;</ins> pages." in page


def test_a_run_that_keeps_no_listing_says_so_and_one_that_is_broken_is_an_error(project: Project) -> None:
    project.write(eval_yaml=CONFIG, server_py=SERVER, questions_jsonl='{"id": "a", "question": "How?"}\n')
    project.keval("run", "eval.yaml", "-q")
    path = project.run_directory()
    manifest = project.read("manifest.json")
    server = manifest["conditions"]["with_terse"]["servers"]["pages"]
    blob = path / "blobs" / hashlib.sha256(b"[]").hexdigest()

    blob.write_text("[]", encoding="utf-8")
    server["listing"] = blob.name
    (path / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    broken = project.keval("show", str(path), "--contexts")
    for condition in manifest["conditions"].values():
        for server in condition["servers"].values():
            server |= {"listing": None, "original_listing": None}
    (path / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    older = project.keval("show", str(path), "--contexts")

    assert (2, True) == (broken.code, f"{blob.name} is no listing of a server" in broken.stderr)
    assert (0, True) == (
        older.code,
        "with_terse: pages against with_pages\n  what it listed is not in the run\n" in older.stdout,
    )


def test_conditions_with_the_same_servers_differ_in_nothing(project: Project) -> None:
    config = CONFIG.partition("  with_terse:")[0].replace("with_pages: {contexts: [pages]}", "bare: {}")
    project.write(eval_yaml=f"{config}metrics: [double/length]\n", questions_jsonl='{"id": "a", "question": "How?"}\n')
    project.keval("run", "eval.yaml", "-q")

    outcome = project.keval("show", str(project.run_directory()), "--contexts")

    assert "The conditions have the same servers, and nothing about them is changed.\n" == outcome.stdout
