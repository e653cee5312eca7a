"""The package that docs/plugins.md writes works: its snippets are installed, and an evaluation uses all of them."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest
import yaml

from tests.conftest import Outcome, Project

GUIDE = Path(__file__).parents[2] / "docs" / "plugins.md"
EVALUATION = """
    dataset: {path: questions.qa, comment: "//"}
    agents:
      parrot: {type: acme/parrot, characteristics: {files: 8}, model: acme/one}
      helper: {type: acme/helper, model: simulated/any}
    contexts: {pages: {type: acme/pages, folder: .}}
    conditions: {baseline: {}, with_pages: {contexts: [pages]}}
    metrics: [{acme/brevity: {limit: 25}}, acme/upkeep]
    judges: {lenient: {type: acme/lenient}, longer: {type: acme/longer}}
    rubrics: [completeness]
    middleware: [acme/patient: {times: 5}]
    plugins: [acme/shop]
    execution: {executor: acme/one}
    longest: 9
"""
SERVER = f"""
import sys

sys.path.append({str(GUIDE.parents[1])!r})

from tests.stdio_server import Tool, serve, text

look_up = Tool(
    lambda arguments, meta: text("It is 42, in " + meta["acme/language"] + "."),
    {{"question": {{"type": "string"}}}},
    description="Look up the answer to a question.",
)
serve("pages", lambda: {{"look_up": look_up}})
"""


@pytest.fixture
def guide(project: Project) -> Project:
    """A project that sees the guide's package, and no other third party's."""
    page = GUIDE.read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    module = "\n\n".join(block for block in blocks if ">>>" not in block)
    points: dict[str, dict[str, str]] = {}
    for block in re.findall(r"^```toml\n(.*?)^```", page, re.MULTILINE | re.DOTALL):
        for group, names in tomllib.loads(block)["project"]["entry-points"].items():
            points.setdefault(group, {}).update(names)
    package = project.root / "package"
    metadata = package / "acme_keval-1.2.3.dist-info"
    metadata.mkdir(parents=True)
    (package / "acme.py").write_text(module, encoding="utf-8")
    (package / "acme_server.py").write_text(SERVER, encoding="utf-8")
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-keval\nVersion: 1.2.3\n", encoding="utf-8")
    sections = (f"[{group}]\n" + "\n".join(map(" = ".join, names.items())) for group, names in points.items())
    (metadata / "entry_points.txt").write_text("\n".join(sections), encoding="utf-8")
    (project.root / "databases").mkdir()
    project.write(
        eval_yaml=EVALUATION,
        questions_qa="// what to ask\nWhat is the answer? = It is 42.\nAnd why? = Nobody knows.\n",
        shop_sqlite="",
    )
    return project


def keval(guide: Project, *args: str, key: str = "") -> Outcome:
    return guide.spawn(*args, env={"PYTHONPATH": str(guide.root / "package"), "ACME_API_KEY": key})


@pytest.mark.slow
def test_an_evaluation_runs_with_every_part_of_the_guide_and_is_exported(guide: Project) -> None:
    ran = keval(guide, "run", "eval.yaml", "--longest", "8", "--json", key="a-key-of-acme")

    trials = {trial["id"]: trial for trial in guide.lines("trials.jsonl")}
    samples = guide.lines("samples.jsonl")
    answered = [name for name, trial in trials.items() if trial["failure"] is None]
    scores = {(line["metric"], line["judge"], line["agent"]) for line in guide.lines("scores.jsonl")}
    assert 8 == len(trials), ran.stderr
    # The parrot offers its model no tools, so it cannot be tried with the pages.
    assert {"parrot/with_pages"} == {name.rsplit("/", 2)[0] for name in trials.keys() - {*answered}}
    assert {"tools_missing"} == {trial["failure"]["kind"] for trial in trials.values() if trial["failure"]}
    assert "Message 1: What is the answer?" == trials[f"parrot/baseline/{samples[0]['id']}/1"]["output"]
    calls = [call for name in answered for call in trials[name]["transcript"]["tool_calls"]]
    assert {("look_up", "It is 42, in en.", 1)} == {
        (call["name"], call["result"], call["executions"]) for call in calls
    }
    assert [("It is 42.", {"asked_on": "2026-01-15"})] == [(s["answer"], s["facts"]) for s in samples[:1]]
    (configured,) = re.findall(
        r"^```yaml\n(metrics:\n.*?)^```", GUIDE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    assert yaml.safe_load(configured)["metrics"] == yaml.safe_load(EVALUATION)["metrics"][:1]
    judged = {("completeness", "lenient"), ("preference", "longer")}
    assert {("acme/brevity", None), ("acme/upkeep", None), *judged} == {line[:2] for line in scores}
    assert any(rate["n"] for rate in guide.read("summary.json")["win_rates"])
    manifest = guide.read("manifest.json")
    assert "acme-keval 1.2.3" == manifest["plugins"]["keval.executors:acme/one"]
    assert ["Acme's price list"] == [price["source"] for price in manifest["prices"].values()]
    assert guide.read("summary.json")["trials"][0]["cost"]["usd"] > 0

    # The extension counted the long answers, by the number that the flag gave.
    long = sum(len(trial["output"].split()) > 8 for trial in trials.values())
    assert {"trials": 8, "long": long, "longest": 8} == guide.read("summary.json")["parts"]["long answers"]
    assert f"{long} of 8 answers have more than 8 words" in keval(guide, "report", "latest").stdout

    # The exporter has its fields as options.
    told = keval(guide, "export", "latest", "--format", "acme/answers", "--help")
    some = keval(guide, "export", "latest", "--format", "acme/answers", "--json")
    all_ = keval(guide, "export", "latest", "--format", "acme/answers", "--failed", "--to", "all")
    (path,) = some.data["files"]
    assert "Write trials that failed, too." in told.stdout
    assert (["2 trials that failed"], 6) == (some.data["left_out"], len(Path(path).read_text("utf-8").splitlines()))
    assert (0, 8) == (all_.code, len((guide.root / "all" / "answers.jsonl").read_text("utf-8").splitlines()))


@pytest.mark.slow
def test_what_the_guide_checks_is_checked(guide: Project) -> None:
    wrong = EVALUATION.replace("files: 8", "files: eight").replace("longest: 9", "longest: 0")
    guide.write(eval_yaml=wrong, questions_qa="What is the answer?\nAnd why? = Nobody knows.\n")

    outcome = keval(guide, "validate", "eval.yaml")

    assert 2 == outcome.code
    assert "questions.qa:1: expected `question = answer`" in outcome.stderr
    assert "eval.yaml:3:56: expected a whole number" in outcome.stderr
    assert "eval.yaml:13:10: 'longest' must be >= 1: 0" in outcome.stderr


@pytest.mark.slow
def test_the_models_of_the_guide_are_resolved_and_its_judge_is_implied(guide: Project) -> None:
    guide.write(
        eval_yaml=EVALUATION.replace(
            "lenient: {type: acme/lenient}, longer: {type: acme/longer}", "one: {model: acme/one}"
        )
    )
    refused = keval(guide, "run", "eval.yaml", "--model", "helper=acme/large")
    planned = keval(guide, "run", "eval.yaml", "--dry-run", "--json")

    assert (2, "error: ACME_API_KEY is not set; export it, or choose another model\n") == (refused.code, refused.stderr)
    assert 0 == planned.code, planned.stderr
    assert "acme/lenient" == json.loads(planned.stdout)["judges"]["one"]["type"]


@pytest.mark.slow
def test_the_check_of_the_guide_looks_at_what_was_left(guide: Project) -> None:
    (verify,) = re.findall(r"^```yaml\n(verify:.*?)^```", GUIDE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    rest = "dataset: {path: tasks.yaml}\nagents: {solver: {type: checks/solution}}\nworkspace: {}\n"
    (guide.root / "eval.yaml").write_text(rest + verify, encoding="utf-8")
    guide.write(tasks_yaml="- {id: a, question: Write a report., solution: {files: {report.md: Done.}}}\n")

    outcome = keval(guide, "check", "eval.yaml", "--only", "verify", "--json")

    (examined,) = outcome.data["examined"]
    assert [] == examined["defects"]
    assert {"solutions": 1, "untouched": 1, "unsolved": 0} == {
        figure["name"]: figure["value"] for figure in examined["figures"]
    }
