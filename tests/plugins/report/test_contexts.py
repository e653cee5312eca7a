"""What the servers of conditions differ in: read from the listings that a run keeps, on the terminal and the page."""

from __future__ import annotations

import hashlib
import json
import sys

from keval import Run
from keval_analysis.texts import diff_of, needs_diff
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
  search has a different definition
    - inputSchema.properties.query.description: "What to look for."
    + inputSchema.properties.query.description: "Words."

with_renamed: pages against with_pages
  every result is 'No.'
  search is named find
  find has a different description (about 11 → 10 tokens)
    - Finds <b>all</b> the pages.
    + Finds <b>some</b> pages.
  find has a different definition
    - inputSchema.properties.query.description: "What to look for."
    + inputSchema.properties.query.description: "Words."
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
    assert "tokens): -Finds &lt;b&gt;all&lt;/b&gt; the pages. +Finds &lt;b&gt;some" in markdown
    page = (project.root / "page.html").read_text(encoding="utf-8")
    assert "<del>Finds &lt;b&gt;all&lt;/b&gt; the pages.</del>" in page


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


SKILL = """---
name: filing
description: How to file a form.
---
# Filing

{}

Then stamp it.
"""
TEXTS = f"""
name: texts
dataset: {{path: questions.jsonl}}
agents: {{scripted: {{}}}}
contexts:
  pages: {{type: stdio, command: {sys.executable}, args: [server.py], env: {{TOKEN: "${{TOKEN}}"}}}}
  guide: {{type: instructions, path: AGENTS.md}}
  skills: {{type: skill, path: filing}}
conditions:
  bare: {{}}
  with_pages: {{contexts: [pages], system_prompt: "You look. PROMPT You end."}}
  with_guide: {{contexts: [guide]}}
  with_skill: {{contexts: [skills]}}
metrics: [double/length]
"""
SECRET = "tok-0123456789abcdef"
DIFFERS = """\
other differences, before → now:
  prompt of with_pages
      You look.
    - Be brief.
    + Be very brief.
      You end.
  tools of pages under with_pages
    - drop
    + lose
  text of instructions of guide under with_guide
    - Answer `once` with [secret].
    + Answer <b>twice</b> with [secret].
    + One.
    + Two.
    + Three.
    + Four.
    + Five.
    + Six.
    +2 more lines: --explain
  text of filing of skills under with_skill
      # Filing
    - Fill it in.
    + Fill in � all of it.
      Then stamp it.
  description of search of pages under with_pages  Finds <b>all</b> the pages. → Finds <i>some</i> pages.
  definition of search of pages under with_pages
    - inputSchema.properties.query.description: "What to look for."
    + inputSchema.properties.query.description: "Words."
"""


def test_two_runs_differ_in_the_lines_of_texts_and_not_in_digests(project: Project) -> None:
    numbers = " ".join(f"{number}." for number in ("One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight"))
    after = SERVER.replace("all</b> the", "some</b>").replace("<b>", "<i>").replace("</b>", "</i>")
    after = after.replace("What to look for.", "Words.").replace('"drop"', '"lose"')
    versions = (
        (TEXTS.replace("PROMPT", "Be brief."), SERVER, f"Answer `once` with {SECRET}.", "Fill it in."),
        (
            TEXTS.replace("PROMPT", "Be very brief."),
            after,
            f"Answer <b>twice</b> with {SECRET}. {numbers}",
            "Fill in \x1b all of it.",
        ),
    )
    ids = []
    for config, server, guide, skill in versions:
        project.write(eval_yaml=config, server_py=server, questions_jsonl='{"id": "a", "question": "How?"}\n')
        (project.root / "AGENTS.md").write_text(guide, encoding="utf-8")
        (project.root / "filing").mkdir(exist_ok=True)
        (project.root / "filing" / "SKILL.md").write_text(SKILL.format(skill), encoding="utf-8")
        ids.append(project.keval("run", "eval.yaml", "--json", env={"TOKEN": SECRET}).data["run"])

    told = project.keval("compare", *ids, env={"COLUMNS": "110"}).stdout
    data = project.keval("compare", *ids, "--json").data
    history = project.keval("history", "--changes", ids[1])

    assert DIFFERS == told[told.index("other differences") : told.index("\nscripted")].rstrip("\n") + "\n"
    diffs = {each["what"]: each.get("diff") for each in data["differences"]}
    assert ["-drop", "+lose"] == diffs["tools of pages under with_pages"]
    assert diffs["description of search of pages under with_pages"] is None
    assert "    + Eight.\n" in history.stdout, history.stderr
    kept = Run(project.root / "results" / "texts" / ids[1])
    assert SECRET not in "".join(path.read_text(encoding="utf-8") for path in (kept.path / "blobs").iterdir())


def test_a_diff_has_sentences_and_says_where_only_white_space_differs() -> None:
    assert ("-a.", "+b.") == diff_of("a.", "b.")
    assert (" One.", "-Two.", "+2.", " Three.", "…", " Six.", "+Seven.") == diff_of(
        "One. Two. Three. Four.\nFive. Six.", "One. 2. Three. Four.\nFive. Six. Seven."
    )
    assert ("… white space alone",) == diff_of("a.  b  c", "a. b c ")
    assert needs_diff("a  b", "a b")
    assert not needs_diff("a b.", "a c.")
