"""`keval generate --routing`: questions that need a skill or tool, and near-misses, as expectations of samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.conftest import Project
from tests.plugins.skills.folders import PDF_BODY, skill
from tests.plugins.start.generate.conftest import ScriptedWriter, dropped, records


def routed(question: str, target: str, *, near: bool = False) -> dict[str, Any]:
    """A question as a model writes it."""
    return {"question": question, "target": target, "near_miss": near}


def test_tools_get_questions_and_near_misses_and_none_is_called(
    library: Callable[..., Project], writer: ScriptedWriter
) -> None:
    project = library("search", "write_note")
    writer.routing = [
        [
            routed("Which books are about lamps?", "search"),
            routed("How does one search one's soul?", "search", near=True),
            routed("Which books are about the lamps?", "search"),
            routed("Which novels are about tides?", "read"),
            routed("Keep in mind that Ada has called.", "write_note"),
        ],
        [routed("Which note follows C sharp?", "write_note", near=True)],
    ]

    outcome = project.keval("generate", "eval.yaml", "--routing", "-n", "4")

    assert 0 == outcome.code
    where = {"conditions": ["with_library"]}
    assert [
        ("Which books are about lamps?", {"calls": ["search"], **where}),
        ("How does one search one's soul?", {"not_calls": ["search"], **where}),
        ("Keep in mind that Ada has called.", {"calls": ["write_note"], **where}),
        ("Which note follows C sharp?", {"not_calls": ["write_note"], **where}),
    ] == [(each["question"], each["expect"]) for each in records(project)]
    assert {"id", "question", "expect", "accepted", "generated_by"} == {*records(project)[0]}
    assert {"it is for another skill or tool, or another kind of question, than was asked for": 2} == dropped(
        outcome.stdout
    )
    first, second = writer.asked
    asked = "Write one question each:\n- one that needs search\n- a near-miss of search\n- one that needs write_note"
    assert f"{asked}\n- a near-miss of write_note" in first
    assert "Which books are about lamps?" in second
    assert not (project.root / "notes.txt").exists()
    waiting = project.keval("review", "eval.yaml", "--questions").stdout
    assert 'golden answer: none\nexpected: {"calls": ["search"], "conditions": ["with_library"]}' in waiting


@pytest.mark.usefixtures("simulated_here")
def test_skills_get_them_too_from_their_texts(project: Project) -> None:
    skill(project.root / "skills", "pdf")
    skill(project.root / "skills", "docx", description="Writes letters.")
    project.write(
        eval_yaml="""
            dataset: {path: questions.jsonl}
            agents: {openai: {model: simulated/any}}
            contexts: {office: {type: skill, path: skills}}
            conditions: {baseline: {}, with_office: {contexts: [office]}}
            judge: {model: simulated/judge}
        """
    )

    made = project.keval("generate", "eval.yaml", "--routing", "-n", "4")
    wrong = project.keval("generate", "eval.yaml", "--routing", "--unanswerable", "0.5")
    accepted = project.keval("review", "eval.yaml", "--questions", "--accept-all")
    valid = project.keval("validate", "eval.yaml")

    assert [0, 2, 0, 0] == [each.code for each in (made, wrong, accepted, valid)], made.stderr + valid.stderr
    assert "--routing calls no tool and writes no answer, so that it takes none of the other two" in wrong.stderr
    expected = [each["expect"] for each in records(project)]
    where = {"conditions": ["with_office"]}
    assert [{kind: [name], **where} for name in ("docx", "pdf") for kind in ("reads", "not_reads")] == expected
    assert "tools that no question uses" not in made.stdout
    assert "Traceback" not in made.stderr


def test_the_writer_is_shown_the_skills(project: Project, writer: ScriptedWriter) -> None:
    skill(project.root / "skills", "pdf")
    project.write(
        eval_yaml="""
            dataset: {path: questions.jsonl}
            agents: {openai: {model: simulated/any}}
            contexts: {office: {type: skill, path: skills}}
            judge: {model: simulated/judge}
        """
    )
    writer.routing = [[routed("Fill this in.", "pdf")], []]

    project.keval("generate", "eval.yaml", "--routing", "-n", "1")

    assert "description: Fills PDF forms." in writer.asked[0]
    assert PDF_BODY.strip().splitlines()[2] in writer.asked[0]
    assert [{"reads": ["pdf"]}] == [each["expect"] for each in records(project)]
