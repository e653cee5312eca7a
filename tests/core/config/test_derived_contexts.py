"""Contexts that derive from others: chains resolve, the manifest keeps them as written, and mistakes have a place."""

from __future__ import annotations

import json
from pathlib import Path

import attrs
import jsonschema
import pytest

from keval.config.load import effective, read_evaluation
from keval.config.source import Source
from keval.records.interventions import Describe, Faults, FixedResult, Intervention
from keval.run.select import Selection, select
from keval_start.schema_command import evaluation_schema
from tests.conftest import Project

CONFIG = """
dataset: {path: questions.jsonl}
agents: {scripted: {}}
contexts:
  terse: {from: docs, describe: {search: Finds pages., open: {parameters: {id: Its id.}}}}
  both: {from: terse, results: {fixed: Nothing.}, faults: {error: 0.5}}
  docs: {type: stdio, command: docs-server, without: [close]}
conditions:
  baseline: {}
  changed: {contexts: [both]}
metrics: [double/length]
"""
DOCS = Intervention(without=("close",))
TERSE = Intervention(describe={"search": Describe("Finds pages."), "open": Describe(None, {"id": "Its id."})})
BOTH = Intervention(results=FixedResult("Nothing."), faults=Faults(error=0.5))


def source(text: str = CONFIG) -> Source:
    return Source.parse(text, "eval.yaml", Path.cwd())


def test_a_chain_has_the_server_of_its_first_and_the_changes_of_all() -> None:
    specs = {spec.label: spec for spec in read_evaluation(source()).contexts}

    assert ["terse", "both", "docs"] == [*specs]
    assert (DOCS, TERSE, BOTH) == specs["both"].interventions
    assert [("contexts", "docs"), ("contexts", "terse"), ("contexts", "both")] == [*specs["both"].changed_at]
    assert ("stdio", {"command": "docs-server"}, "docs") == (
        specs["both"].type,
        specs["both"].options,
        specs["both"].origin,
    )
    assert ((DOCS,), None) == (specs["docs"].interventions, specs["docs"].origin)


def test_a_config_is_written_back_as_it_was_with_what_a_selection_derives_from() -> None:
    evaluation = select(read_evaluation(source()), Selection(conditions=("changed",)))

    kept = effective(evaluation)["contexts"]

    assert source().data["contexts"] == kept
    again = read_evaluation(
        Source("manifest.json", Path.cwd(), json.loads(json.dumps({**source().data, "contexts": kept})))
    )
    assert [attrs.evolve(spec, path=()) for spec in evaluation.contexts] == [
        attrs.evolve(spec, path=()) for spec in again.contexts
    ]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("from: terse", "from: tersed", "5:16: no context named 'tersed'; did you mean 'terse'?"),
        (
            "from: docs",
            "from: both",
            "5:16: the contexts derive from each other (terse → both → terse); one of them must define a server",
        ),
        (
            "both: {from: terse,",
            "both: {from: terse, timeout: 3,",
            (
                "5:23: unknown key 'timeout': a context with `from:` takes only what it changes; it can"
                " change: tools, without, rename, describe, results, faults, text, server_instructions"
            ),
        ),
        ("error: 0.5", "error: 1.5", "5:67: 'error' must be <= 1: 1.5"),
        (
            "results: {fixed: Nothing.}",
            "rename: {search: find it?}",
            (
                "5:31: 'rename' must give each tool a name of 1 to 128 letters, digits, `_`, `-` and `.`, as models and"
                " MCP allow: 'find it?'"
            ),
        ),
        (
            "{fixed: Nothing.}",
            "shuffled",
            "5:32: expected scrambled or empty or a mapping, got 'shuffled'",
        ),
        (
            "command: docs-server",
            "command: docs-server, tap: false",
            (
                "6:3: agents connect to this server themselves, so nothing about it can be changed; let keval connect"
                " to it (leave out `tap: false`), or leave this out"
            ),
        ),
        (
            "contexts: [both]",
            "contexts: [both, terse]",
            "9:30: 'terse' and 'both' are the same server, changed differently; put them into separate conditions",
        ),
    ],
)
def test_a_mistake_is_told_at_its_place(project: Project, old: str, new: str, expected: str) -> None:
    assert old in CONFIG
    project.write(eval_yaml=CONFIG.replace(old, new, 1), questions_jsonl='{"id": "a", "question": "How?"}\n')

    outcome = project.keval("validate", "eval.yaml")

    assert (2, "") == (outcome.code, outcome.stdout)
    assert f"eval.yaml:{expected}" in outcome.stderr


def test_a_plan_says_what_is_changed_of_which_server(project: Project) -> None:
    project.write(eval_yaml=CONFIG, questions_jsonl='{"id": "a", "question": "How?"}\n')

    shown = project.keval("run", "eval.yaml", "--dry-run").stdout
    told = project.keval("run", "eval.yaml", "--dry-run", "--json").data["changes"]

    assert (
        "  context    both: docs with without close; describe search, open;"
        " results fixed: Nothing., faults error: 0.5\n"
    ) in shown
    assert {"from": "docs", "interventions": [DOCS.as_config(), TERSE.as_config(), BOTH.as_config()]} == told["both"]


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        (CONFIG, True),
        (CONFIG.replace("from: terse,", "from: terse, timeout: 3,"), False),
        (CONFIG.replace("without: [close]", "without: close"), False),
        (CONFIG.replace("{fixed: Nothing.}", "shufled"), False),
    ],
)
def test_the_schema_knows_what_contexts_change(text: str, fits: bool) -> None:
    found = [*jsonschema.Draft202012Validator(evaluation_schema()).iter_errors(source(text).data)]

    assert fits == (not found), found
