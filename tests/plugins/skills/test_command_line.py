"""Texts in whole runs: what agents get, whether they read it, what is left out, and what is wrong with a config."""

from __future__ import annotations

import pytest

from keval import open_run
from tests.conftest import Project
from tests.plugins.skills.folders import skill, write

pytestmark = pytest.mark.usefixtures("simulated_here")
RULES = "# House\n\nBe kind.\n\n## Style\n\nAnswer in one sentence.\n\n## Numbers\n\nWrite numbers in digits.\n"
EVAL = """
    dataset: {path: questions.yaml}
    agents:
      openai: {model: simulated/any}
      gadk: {model: simulated/any}
    contexts:
      forms: {type: skill, path: skills/pdf, neighbours: [skills]}
      placebo: {from: forms, text: scrambled}
      rules: {type: instructions, path: AGENTS.md}
      terse: {from: rules, without: [Style]}
    conditions:
      baseline: {}
      with_forms: {contexts: [forms, rules]}
      with_placebo: {contexts: [placebo, terse]}
    metrics: [testing/words]
"""


@pytest.fixture
def skills(project: Project) -> Project:
    write(project.root, AGENTS_md=RULES)
    skill(project.root / "skills", "pdf")
    skill(project.root / "skills", "docx", body="Letters begin with a greeting.\n", description="Writes letters.")
    project.write(eval_yaml=EVAL, questions_yaml="- {id: a, question: Read the skill pdf. Who reads the fields?}\n")
    return project


@pytest.mark.slow
@pytest.mark.parametrize(
    ("agent", "ablated"), [("openai", []), pytest.param("gadk", ["pdf", "Style", "Numbers"], marks=pytest.mark.slow)]
)
def test_agents_without_a_folder_read_skills_with_a_tool_and_the_run_tells_what_they_read(
    skills: Project, agent: str, ablated: list[str]
) -> None:
    outcome = skills.run("eval.yaml", "--agent", agent, *(["--ablate", "with_forms"] if ablated else []))

    assert 0 == outcome.code, outcome.stderr
    run = open_run(skills.run_directory())
    transcripts = {trial.condition: trial.transcript for trial in run.trials() if trial.transcript}
    for condition in ("with_forms", "with_placebo"):
        told = transcripts[condition]
        assert [
            ("pdf", "skill", "read_skill", True, 2, "read_skill"),
            ("docx", "neighbour", "read_skill", False, None, None),
            ("rules", "instructions", "system prompt", True, 1, None),
        ] == [(each.name, each.kind, each.way, each.read, each.model_call, each.by) for each in told.texts]
        call, *others = told.tool_calls
        assert [] == [each for each in others if not each.error]  # a scrambled skill has it look for another
        assert ("read_skill", {"name": "pdf"}) == (call.name, dict(call.arguments))
        assert (condition == "with_forms") is ("Read the form fields" in (call.result or ""))
    texts = run.manifest.conditions["with_placebo"].texts
    assert [("skill", ("pdf",)), ("section", ("House",))] == [(each.part, each.parts) for each in texts.values()]
    assert {agent: "read_skill"} == texts["placebo"].ways
    without = {label: [text.name for text in each.texts] for label, each in transcripts.items() if "without" in label}
    left = {"pdf": ["rules"], "Style": ["pdf", "docx", "rules"], "Numbers": ["pdf", "docx", "rules"]}
    assert {f"with_forms without {part}": left[part] for part in ablated} == without


def test_what_is_wrong_with_texts_is_told_before_the_run_each_at_its_place(skills: Project) -> None:
    write(skills.root, bare__SKILL_md="x", empty_md=" ")
    config = EVAL.replace("without: [Style]", "without: [Stile]").replace(
        "    conditions:",
        """\
      bare: {type: skill, path: bare}
      empty: {type: instructions, path: empty.md}
      results: {from: forms, results: empty}
      office: {type: plugin, path: skills}
      more: {type: skill, path: skills}
    conditions:""",
    )
    skills.write(eval_yaml=config.replace("contexts: [forms, rules]", "contexts: [forms, rules, more]"))

    outcome = skills.keval("validate", "eval.yaml")

    assert (2, "") == (outcome.code, outcome.stdout)
    assert [
        "error: eval.yaml:9:34: the instructions have no section 'Stile'; did you mean 'Style'?",
        "error: eval.yaml:10:29: 'path' must lead to skills as agentskills.io has them:",
        "  bare/SKILL.md:1: there is no front matter; begin with `---`, `name:`, `description:` and `---`",
        "error: eval.yaml:11:37: 'path' must lead to a file with instructions: empty.md: it is empty",
        "error: eval.yaml:12:26: 'results' cannot be changed of skills, only text, without, describe",
        "error: eval.yaml:13:32: 'path' must lead to a plugin of Claude Code:",
        "  skills/.claude-plugin/plugin.json: it cannot be read: No such file or directory",
        "error: eval.yaml:17:41: 'forms' and 'more' would both be given as 'pdf'; put them into separate conditions",
    ] == [line.partition(" (context")[0] for line in outcome.stderr.splitlines()]
