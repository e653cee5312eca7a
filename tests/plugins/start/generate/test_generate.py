"""`keval generate`: questions with golden answers that results prove, and what is dropped."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Project
from tests.plugins.start.generate.conftest import ScriptedWriter, call, draft, dropped, records
from tests.plugins.start.generate.library import HOSTILE

ROOT = Path(__file__).parents[4]
LAMP = draft("Who wrote The Lamp?", "Ada Quill wrote it in 1911.", [1, 2], "The Lamp was written by Ada Quill in 1911.")
TIDE = draft("How long is the book The Tide?", "It has 198 pages.", [3], "It has 198 pages.")


def generate(project: Project, *args: str) -> tuple[int, str, str]:
    outcome = project.keval("generate", "eval.yaml", *args)
    return outcome.code, outcome.stdout, outcome.stderr


def test_a_question_is_written_with_the_calls_that_prove_its_answer(
    library: Callable[..., Project], writer: ScriptedWriter
) -> None:
    project = library("search", "read", "write_note")
    writer.calls = [[call("search", query="lamp"), call("read", title="The Lamp"), call("read", title="The Tide")], []]
    writer.questions = [[LAMP, TIDE]]

    code, stdout, _ = generate(project, "-n", "2")

    first, second = records(project)
    assert 0 == code
    assert {
        "id": first["id"],
        "question": "Who wrote The Lamp?",
        "answer": "Ada Quill wrote it in 1911.",
        "accepted": False,
        "proof": [
            {"tool": "search", "arguments": {"query": "lamp"}, "result": "title: The Lamp\ntitle: The Tide"},
            {
                "tool": "read",
                "arguments": {"title": "The Lamp"},
                "result": "The Lamp was written by Ada Quill in 1911.\nIt has 312 pages.",
                "evidence": "The Lamp was written by Ada Quill in 1911.",
            },
        ],
        "generated_by": "simulated/judge",
    } == first
    assert "It has 198 pages." == second["answer"]
    assert "  write_note: it may change something, as it does not say that it only reads (--allow-" in stdout
    assert stdout.endswith("next: keval review eval.yaml --questions\n")
    assert not (project.root / "notes.txt").exists()


@pytest.mark.slow
def test_answers_that_no_result_states_are_dropped_with_the_reason(
    library: Callable[..., Project], writer: ScriptedWriter
) -> None:
    project = library("read")
    writer.calls = [[call("read", title="The Lamp"), call("read", title="Nothing")], []]
    evidence = "It has 312 pages."
    writer.questions = [
        [
            draft("How long is it?", "It has 313 pages.", [1], evidence),
            draft("Who made it?", "It was made by Carla Wood.", [1], evidence),
            draft("Where is it?", "It has 312 pages.", [1], "It stands on the shelf."),
            draft("What failed?", "The title does.", [2], "no book has the title"),
            draft("How many pages has The Lamp?", "It has 312 pages.", [1], evidence),
            draft("How many pages has the book The Lamp?", "It has 312 pages.", [1], evidence),
        ],
        [],
    ]

    code, stdout, _ = generate(project, "-n", "5")

    assert 0 == code
    assert ["How many pages has The Lamp?"] == [record["question"] for record in records(project)]
    assert {
        "its answer has a number or a name that no result has": 2,
        "the passage quoted as its proof is in no result": 1,
        "no call that was made and succeeded is named as its proof": 1,
        "it is nearly the same as another question": 1,
    } == dropped(stdout)
    assert "1 question of 5" in stdout


def test_a_proof_that_varies_is_dropped(library: Callable[..., Project], writer: ScriptedWriter) -> None:
    project = library("draw")
    writer.calls = [[call("draw")], []]
    writer.questions = [[draft("What is the lucky number?", "It was drawn.", [1], "The lucky number is")], []]

    code, stdout, _ = generate(project, "-n", "1")

    assert 3 == code
    assert [] == records(project)
    assert {"its calls gave other results the second time": 1} == dropped(stdout)
    why = "a question was dropped: its calls gave other results the second time"
    assert f"tools that no question uses:\n  draw: {why}\n" in stdout
    assert "for more: --model names a real one, such as ollama/qwen3:4b; --about says what" in stdout
    assert "or write questions yourself, a line of questions.jsonl each:\n  {" in stdout
    assert "keval run" not in stdout


@pytest.mark.slow
def test_a_tool_that_writes_is_called_only_if_that_is_allowed_and_proves_nothing_if_its_state_stays(
    library: Callable[..., Project], writer: ScriptedWriter
) -> None:
    project = library("write_note")
    writer.calls = [[call("write_note")], []]
    writer.questions = [[draft("How many notes are there?", "There are 1 notes.", [1], "There are 1 notes.")], []]

    refused = generate(project, "-n", "1")
    code, stdout, _ = generate(project, "-n", "1", "--allow-writes")

    assert (2, "") == refused[:2]
    assert "of 1 tool, none says that it only reads (readOnlyHint); --allow-writes calls them all" in refused[2]
    assert 3 == code
    assert {"its calls gave other results the second time": 1} == dropped(stdout)


def test_a_server_without_tools_is_an_error(library: Callable[..., Project], writer: ScriptedWriter) -> None:
    code, stdout, stderr = generate(library())

    assert (2, "") == (code, stdout)
    assert "server 'library' lists no tools" in stderr


@pytest.mark.slow
def test_a_server_that_dies_ends_its_round_and_in_the_end_the_command(
    library: Callable[..., Project], writer: ScriptedWriter
) -> None:
    project = library("read", "die")
    writer.calls = [
        [call("read", title="The Lamp"), call("die")],
        [call("die")],
        [call("die"), call("read", title="The Tide")],
    ]
    writer.questions = [[draft("How many pages has The Lamp?", "312", [1], "It has 312 pages.")], []]

    code, stdout, stderr = generate(project, "-n", "9")

    assert 3 == code
    assert 1 == len(records(project))
    assert 3 == stderr.count("a server was lost")
    assert "stopped: " in stdout
    assert "tools that no question uses:\n  die: no call of it was made\n" in stdout


@pytest.mark.slow
def test_a_picture_proves_nothing_and_a_huge_result_is_cut(
    library: Callable[..., Project], writer: ScriptedWriter
) -> None:
    project = library("huge", "picture")
    writer.calls = [[call("picture"), call("huge")], []]
    cellar = draft("How many rooms has the cellar?", "It has 7 rooms.", [2], "The cellar has 7 rooms.")
    writer.questions = [[draft("What is drawn?", "A picture.", [1], "[image"), cellar]]

    code, stdout, _ = generate(project, "-n", "1")

    (record,) = records(project)
    assert 0 == code
    assert 2_001 == len(record["proof"][0]["result"])
    assert max(map(len, writer.asked)) < 10_000
    assert {"no call that was made and succeeded is named as its proof": 1} == dropped(stdout)
    assert "  picture: no call returned text\n" in stdout


def test_what_a_result_demands_is_data_behind_a_fence_that_it_cannot_close(
    library: Callable[..., Project], writer: ScriptedWriter
) -> None:
    project = library("hostile")
    writer.calls = [[call("hostile")], []]
    writer.questions = [[], []]

    generate(project, "-n", "1")

    shown = next(message for message in writer.asked if HOSTILE in message)
    code = shown.split("end in -")[1].split(" ")[0]
    assert f"<call_1-{code}>\nhostile {{}}\n{HOSTILE}\n</call_1-{code}>" in shown
    assert "00000000" != code


@pytest.mark.slow
def test_a_reply_that_cannot_be_used_is_asked_for_once_more_and_then_counted(
    library: Callable[..., Project], writer: ScriptedWriter
) -> None:
    project = library("read")
    lamp = call("read", title="The Lamp")
    unreadable = [{"tool": "read", "arguments": '{"title": NaN}'}]
    odd = [call("unknown"), call("read", title=["The Lamp"]), call("read"), call("read", title="\ud800"), lamp]
    writer.calls = ["BANANA", unreadable, [lamp, *odd], []]
    writer.questions = [
        [LAMP | {"calls": [1], "question": " "}],
        '{"questions": [{"question": "Why?"}]}',
        [LAMP | {"calls": [1], "question": "Who wrote The Lamp\ud800"}],
    ]

    code, stdout, _ = generate(project, "-n", "1")

    assert 0 == code
    assert 1 == len(records(project))
    assert {"a reply of the model could not be used, asked for twice": 2} == dropped(stdout)
    assert "Who wrote The Lamp?" == records(project)[0]["question"]
    assert 2 == sum("Your last reply could not be used" in message for message in writer.asked)


@pytest.mark.slow
def test_unanswerable_questions_are_a_share_and_none_seeks_what_a_result_has(
    library: Callable[..., Project], writer: ScriptedWriter
) -> None:
    project = library("search", "read")
    writer.calls = [[call("read", title="The Lamp")], []]
    writer.questions = [[LAMP | {"calls": [1]}]]
    find = [call("search", query="price")]
    writer.unanswerable = [
        [
            {"question": "Who wrote it?", "sought": ["quill", "1911"], "calls": find},
            {"question": "What is it made of?", "sought": [], "calls": find},
            {"question": "What does The Lamp cost?", "sought": ["price"], "calls": find},
        ]
    ]

    code, stdout, _ = generate(project, "-n", "2", "--unanswerable", "0.5")

    found = records(project)[1]
    assert 0 == code
    assert "2 questions of 2 in" in stdout
    assert "1 of them unanswerable" in stdout
    assert ("What does The Lamp cost?", True) == (found["question"], found["unanswerable"])
    assert "This is not known: nothing that the tools return says it." == found["answer"]
    assert [{"tool": "search", "arguments": {"query": "price"}, "result": "title: The Lamp\ntitle: The Tide"}] == (
        found["proof"]
    )
    assert {
        "it should be unanswerable, but a result has all that it seeks": 1,
        "it should be unanswerable, but names neither what it seeks nor a call that would find it": 1,
    } == dropped(stdout)


@pytest.mark.slow
def test_questions_that_the_dataset_has_are_not_made_again_and_its_lines_stay(
    library: Callable[..., Project], writer: ScriptedWriter
) -> None:
    project = library("read")
    before = '{"id":"lamp",  "question": "Who wrote the book The Lamp?", "answer": "Ada Quill wrote it in 1911."}'
    project.write(questions_jsonl=before)  # without an end of the line
    writer.calls = [[call("read", title="The Lamp"), call("read", title="The Tide")], []]
    writer.questions = [[LAMP | {"calls": [1]}, TIDE | {"calls": [2]}]]

    code, stdout, _ = generate(project, "-n", "1")

    text = (project.root / "questions.jsonl").read_text(encoding="utf-8")
    assert 0 == code
    assert text.startswith(before + "\n")
    assert ["lamp", records(project)[1]["id"]] == [record["id"] for record in records(project)]
    assert {"it is nearly the same as another question": 1} == dropped(stdout)
    assert "Who wrote the book The Lamp?" in writer.asked[1]


@pytest.mark.slow
def test_records_have_the_keys_of_the_dataset_and_no_secrets(
    library: Callable[..., Project], writer: ScriptedWriter
) -> None:
    project = library("leak")
    config = (project.root / "eval.yaml").read_text(encoding="utf-8")
    config = config.replace("questions.jsonl", "questions.jsonl, question_key: q, answer_key: golden")
    project.write(eval_yaml=config.replace("env: {PYTHONPATH", 'env: {TOKEN: "${TOKEN}", PYTHONPATH'))
    writer.calls = [[call("leak")], []]
    writer.questions = [
        [draft("What is the door code?", "It is 4711, not sk-0123456789.", [1], "The door code is 4711")]
    ]

    outcome = project.keval("generate", "eval.yaml", "-n", "1", env={"TOKEN": "sk-0123456789"})

    (record,) = records(project)
    assert 0 == outcome.code
    assert {"id", "q", "golden", "accepted", "proof", "generated_by"} == record.keys()
    assert "sk-0123456789" not in json.dumps(record)
    assert record["golden"].startswith("It is 4711, not ")


@pytest.mark.slow
def test_the_budget_of_the_config_ends_it_and_what_was_made_is_kept(
    library: Callable[..., Project], writer: ScriptedWriter
) -> None:
    project = library("read")
    writer.calls = [[call("read", title="The Lamp")], []]
    writer.questions = [[LAMP | {"calls": [1]}], []]

    code, stdout, _ = generate(project, "-n", "9", "--budget", "tokens=1500")

    assert 3 == code
    assert 1 == len(records(project))
    assert "stopped: budget used: " in stdout


@pytest.mark.slow
def test_the_summary_for_machines_says_the_same(library: Callable[..., Project], writer: ScriptedWriter) -> None:
    project = library("read", "picture")
    writer.calls = [[call("read", title="The Lamp")], []]
    writer.questions = [[LAMP | {"calls": [1]}]]

    code, stdout, _ = generate(project, "-n", "1", "--to", "other.jsonl", "--json")

    summary = json.loads(stdout)
    (line,) = (project.root / "other.jsonl").read_text(encoding="utf-8").splitlines()
    assert 0 == code
    assert [json.loads(line)["id"]] == summary["made"]
    assert {"picture": "no call of it was made"} == summary["unused_tools"]
    assert ("other.jsonl", 1, 1, 2, 0.0, True, None) == tuple(
        summary[key] for key in ("file", "asked_for", "calls", "model_calls", "usd", "simulated", "stopped")
    )


def test_a_dataset_that_is_not_in_json_lines_is_refused_before_anything_starts(
    library: Callable[..., Project], writer: ScriptedWriter
) -> None:
    project = library("read")
    yaml = (project.root / "eval.yaml").read_text(encoding="utf-8")
    project.write(eval_yaml=yaml.replace("questions.jsonl", "questions.csv"))

    code, _, stderr = generate(project)

    assert 2 == code
    assert "questions.csv: keval writes questions to JSON lines only" in stderr
    assert "'csv'; name another one with --to, such as --to generated.jsonl" in stderr
    assert [] == writer.asked


def test_the_context_must_be_named_if_there_are_several(library: Callable[..., Project]) -> None:
    project = library("read")
    yaml = (project.root / "eval.yaml").read_text(encoding="utf-8")
    project.write(eval_yaml=yaml.replace("\nconditions:", "\n  second: {type: stdio, command: x}\nconditions:"))

    several = generate(project)
    unknown = generate(project, "--context", "librery")

    assert (2, 2) == (several[0], unknown[0])
    assert "eval.yaml has library, second; name one with --context" in several[2]
    assert "no context named 'librery'; did you mean 'library'" in unknown[2]


@pytest.mark.slow
def test_the_simulated_model_searches_for_what_a_server_says_of_itself_and_reads_what_is_named(
    project: Project,
) -> None:
    shutil.copytree(ROOT / "examples" / "context-ab", project.root, dirs_exist_ok=True)

    outcome = project.keval("generate", "context-ab.yaml", "-n", "24", "--to", "made.jsonl")

    made = [json.loads(line) for line in (project.root / "made.jsonl").read_text(encoding="utf-8").splitlines()]
    assert (0, 24) == (outcome.code, len(made))
    assert {"search_docs", "read_page"} == {call["tool"] for each in made for call in each["proof"]}
