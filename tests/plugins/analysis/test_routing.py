"""Routing: skills and tools that were to be chosen, by a model that chooses by the words of descriptions."""

from __future__ import annotations

import json
import re
from typing import Any

import attrs
import pytest

from keval import Sample
from keval.plugin import GivenText
from keval.records.end_state import EndState
from keval.records.manifest import ConditionEntry, ServerEntry
from keval.records.transcript import ToolCall, Transcript
from keval.records.trial import Expectation, Trial
from keval_analysis.expectations import ExpectationCheck
from keval_gateway import ChatCall, ChatReply, ChatRequest
from tests.agents.stage import OWN_AGENTS
from tests.conftest import Project, serve_here
from tests.plugins.skills.folders import skill

CONFIG = """
dataset: {{path: questions.jsonl}}
agents: {{{agent}: {options}}}
contexts:
  desk: {{type: skill, path: skills}}
  told: {{from: desk, describe: {{letters: "Writes letters.", forms: "Fills forms."}}}}
conditions:
  misleading: {{contexts: [desk]}}
  mended: {{contexts: [told]}}
metrics: [testing/words]
execution: {{num_repetitions: 2}}
gates: []
"""
LETTER, FORM, NEAR = "Write a letter to Ann.", "Fill this form.", "How do letters reach forms of address?"


def _stems(text: str) -> set[str]:
    return {word.rstrip("s") for word in re.findall(r"[a-z]{4,}", text.lower())}


def choose(request: ChatRequest) -> ChatReply:
    """Read the skill whose description has most words of the question, if any, and then answer."""
    if request.messages[-1].role == "tool":
        return ChatReply("Done.")
    known = re.findall(r"^- (\w+): (.*)$", request.system, re.MULTILINE)
    asked = _stems(request.messages[-1].text)
    best = max(known, key=lambda each: len(asked & _stems(each[1])))
    if not asked & _stems(best[1]):
        return ChatReply("Done.")
    (tool,) = request.tools
    return ChatReply("", (ChatCall(tool.name, {"name": best[0]}),))


@pytest.mark.parametrize(
    "agent", ["openai", *(pytest.param(a, marks=pytest.mark.slow) for a in ("acp", "anthropic", "gadk", "ms"))]
)
def test_a_misleading_description_and_a_near_miss_are_found(
    project: Project, monkeypatch: pytest.MonkeyPatch, agent: str
) -> None:
    serve_here(monkeypatch, choose)
    options = {"model": "simulated/chooser", **(OWN_AGENTS[agent].options if agent == "acp" else {})}
    skill(
        project.root / "skills", "forms", "Ask for the fields of the form first.", "Fills any form, writes any letter."
    )
    skill(project.root / "skills", "letters", "Begin with a kind greeting, always.", "For posts.")
    samples = [
        {"id": "letter", "question": LETTER, "expect": {"reads": "letters", "not_reads": "forms"}},
        {"id": "form", "question": FORM, "expect": [{"reads": ["forms"]}, {"not_calls": "send"}]},
        {"id": "near", "question": NEAR, "expect": {"not_reads": ["letters", "forms"], "conditions": ["misleading"]}},
    ]
    project.write(
        eval_yaml=CONFIG.format(agent=agent, options=json.dumps(options)),
        questions_jsonl="".join(json.dumps(each) + "\n" for each in samples),
    )

    outcome = project.run("eval.yaml")

    assert 1 == outcome.code, outcome.stderr
    summary = project.read("summary.json")
    expect = next(gate for gate in summary["gates"] if gate["kind"] == "expect")
    # Of tools of its own, the program behind the protocol tells nothing.
    unknown = "; 4 unknown, such as acp/misleading/form/1 does not call send: its agent does not tell which tools"
    reason = f"10 of 20 expectations met{unknown}" if agent == "acp" else "14 of 20 expectations met"
    assert expect["reason"].startswith(reason)
    told = {(e["condition"], e["sample"], e["expected"], e["answered"]) for e in summary["unmet"]}
    assert {
        ("misleading", "letter", "reads letters", "read forms"),
        ("misleading", "letter", "does not read forms", "read forms"),
        ("misleading", "near", "does not read forms", "read forms"),
    } == told
    found = {(each["condition"], each["kind"], each["name"]): each for each in summary["routing"]}
    rates = {
        key[::2]: tuple(
            each[of] and (each[of]["rate"], each[of]["trials"], each[of]["n"]) for of in ("recall", "precision")
        )
        for key, each in found.items()
        if key[1] == "reads"
    }
    assert {
        ("misleading", "letters"): ((0.0, 2, 1), None),
        ("misleading", "forms"): ((1.0, 2, 1), (pytest.approx(1 / 3), 6, 3)),
        ("misleading", ""): (None, None),
        ("mended", "letters"): ((1.0, 2, 1), (1.0, 2, 1)),
        ("mended", "forms"): ((1.0, 2, 1), (1.0, 2, 1)),
    } == rates
    chosen = {key[::2]: each["chosen"] for key, each in found.items() if key[0] == "misleading" and key[1] == "reads"}
    assert {"letters": {"forms": 2}, "forms": {"forms": 2}, "": {"forms": 2}} == {k[1]: v for k, v in chosen.items()}
    share = found["misleading", "reads", "forms"]["precision"]
    assert 0 < share["ci_low"] < 1 / 3 < share["ci_high"] < 1
    ends = f"[{100 * share['ci_low']:.0f}, {100 * share['ci_high']:.0f}]"
    line = f"recall 100 % of 2, n=1; precision 33 % {ends} of 6, n=3; chosen: forms 2"
    wide = attrs.evolve(project, environ={"COLUMNS": "400"}).keval("report", "latest", "--explain").stdout
    assert f"skill forms ({agent} misleading): {line}\n" in wide
    assert f"no skill ({agent} misleading): recall –; precision –; chosen: forms 2\n" in wide
    markdown = project.keval("report", "latest", "--markdown").stdout
    assert f"| skill letters | {agent} | misleading | 0 % of 2, n=1 | – | forms 2 |" in markdown
    assert "and 2 more" in project.keval("report", "latest").stdout
    project.keval("report", "latest", "--html", "report.html")
    page = (project.root / "report.html").read_text(encoding="utf-8")
    assert '<section id="routing"' in page
    assert agent == "acp" or "<bdi>no tool</bdi>" in page


def _checked(expect: Expectation, transcript: Transcript | None) -> tuple[int, int, int, str]:
    entry = ConditionEntry(servers={"beta": ServerEntry(("beta__find", "note"), aliases={"find": "beta__find"})})
    check = ExpectationCheck({"with": entry})
    check.add(Trial("t", Sample("q", "How?", expect=(expect,)), "ada", "with", 1, transcript))
    return check.met, check.missed, check.unknown, check.example.partition(": ")[2]


SEEN: Any = {"request": "0" * 64}
PDF = GivenText("office:pdf", "skill", ".agents/skills", "")
TOOL = GivenText("pdf", "skill", "read_skill", "")
FIND = ToolCall("beta__find", tool="find")


@pytest.mark.parametrize(
    ("expect", "transcript", "found"),
    [
        ({"reads": ("pdf",)}, Transcript(texts=(PDF,), **SEEN), "missed"),
        ({"not_reads": ("pdf",)}, Transcript(texts=(PDF,), **SEEN), "met"),
        ({"reads": ("office:pdf",)}, Transcript(texts=(GivenText("office:pdf", "skill", "", "", read=True),)), "met"),
        ({"reads": ("pdf",)}, Transcript(texts=(PDF,)), "keval saw no model request"),
        (
            {"reads": ("pdf",)},
            Transcript(tool_calls=(ToolCall("sh", {"c": "cat .agents/skills/pdf/SKILL.md"}),), texts=(PDF,)),
            "met",
        ),
        ({"reads": ("pdf",)}, Transcript(texts=(TOOL,)), "missed"),
        ({"reads": ("pdf",)}, Transcript(texts=(TOOL,), unlisted_calls=None), "keval saw no model request"),
        (
            {"reads": ("pdf",), "not_calls": ("send",)},
            Transcript(tool_calls=(ToolCall("desk__read_skill", {"name": "pdf"}, tool="read_skill"),), texts=(TOOL,)),
            "met",
        ),
        (
            {"reads": ("pdf",)},
            Transcript(tool_calls=(ToolCall("read_skill", {"name": "pdf"}, error="lost"),), texts=(TOOL,)),
            "missed",
        ),
        ({"not_reads": ("pdf",)}, Transcript(**SEEN), "met"),
        (
            {"not_reads": ("pdf",)},
            Transcript(end_state=EndState(facts={"method": "copy"}), **SEEN),
            "no context gave it, and of other texts in a workspace nothing is known",
        ),
        ({"calls": ("find",), "not_calls": ("note",)}, Transcript(tool_calls=(FIND,)), "met"),
        ({"calls": ("beta__find",), "tool_called": ("find",)}, Transcript(tool_calls=(FIND,)), "met"),
        ({"not_calls": ("find",)}, Transcript(tool_calls=(FIND,)), "missed"),
        ({"not_calls": ("find",)}, Transcript(unlisted_calls=2), "not all of its tool calls are known"),
        ({"not_calls": ("find",)}, Transcript(tool_calls_by="tap"), "met"),
        (
            {"calls": ("Bash",)},
            Transcript(tool_calls_by="tap"),
            "its agent does not tell which tools of its own it called",
        ),
        ({"calls": ("find",)}, None, "not all of its tool calls are known"),
    ],
)
def test_what_is_not_known_is_neither_met_nor_missed(
    expect: dict[str, Any], transcript: Transcript | None, found: str
) -> None:
    met, missed, unknown, example = _checked(Expectation(**expect), transcript)

    whole = sum(map(len, expect.values()))
    assert {"met": (whole, 0, 0), "missed": (0, whole, 0)}.get(found, (0, 0, whole)) == (met, missed, unknown)
    assert example in (found, "")


TOOLS = """
dataset: {path: questions.jsonl}
agents: {scripted: {}}
metrics: [double/length]
"""


def test_tools_are_counted_as_skills_are_and_what_nobody_names_counts_only_where_all_is_named(project: Project) -> None:
    def sample(id: str, expect: Any, *calls: str, **more: Any) -> str:
        made = [{"name": name, "result": ""} for name in calls]
        return json.dumps({"id": id, "question": "How?", "says": "So.", "calls": made, "expect": expect, **more}) + "\n"

    project.write(
        eval_yaml=TOOLS,
        questions_jsonl=sample("a", {"calls": "find"}, "find", "search")
        + sample("b", {"calls": "find"}, "search")
        + sample("c", {"calls": ["search"]}, "search")
        + sample("d", {"not_calls": ["find"]}, "search")
        + sample("e", {"not_calls": ["find"]})
        + sample("f", {"calls": "find"}, fail="no luck")
        + sample("g", {"contains": "So"}, "find"),
    )

    project.keval("run", "eval.yaml")

    find, search, nothing = project.read("summary.json")["routing"]
    assert (0.5, 2, {"search": 2, "find": 1}) == (find["recall"]["rate"], find["recall"]["n"], find["chosen"])
    assert (1.0, 1) == (find["precision"]["rate"], find["precision"]["n"])
    assert (1.0, pytest.approx(1 / 3), 3) == (
        search["recall"]["rate"],
        search["precision"]["rate"],
        search["precision"]["n"],
    )
    assert ("", {"search": 1, "": 1}, None) == (nothing["name"], nothing["chosen"], nothing["precision"])


def test_nothing_is_told_of_answers_whose_requests_keval_did_not_see(project: Project) -> None:
    project.write(
        eval_yaml=TOOLS.replace("scripted: {}", "logged: {type: recorded, path: answers.jsonl}"),
        questions_jsonl=json.dumps({"id": "q", "question": "How?", "expect": {"reads": "pdf"}})
        + "\n"
        + json.dumps({"id": "r", "question": "Why?", "expect": {"not_reads": "pdf"}}),
        answers_jsonl='{"id": "q", "response": "So."}\n{"id": "r", "response": "So."}\n',
    )

    outcome = project.keval("run", "eval.yaml")

    assert "expect  undecided (0 of 2 expectations met; 2 unknown, such as logged/baseline/q/1 reads" in outcome.stdout
    (pdf,) = project.read("summary.json")["routing"]
    assert ("pdf", None, None, 2, {}) == tuple(pdf[key] for key in ("name", "recall", "precision", "unknown", "chosen"))
    assert "skill pdf (logged baseline): recall –; precision –; chosen: unknown 2" in outcome.stdout
