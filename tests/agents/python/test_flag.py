"""An agent of the user's by a flag alone: `--agent TYPE:TEXT`."""

from __future__ import annotations

import pytest

from tests.conftest import Project


@pytest.fixture
def folder(project: Project) -> Project:
    """A config without agents, beside two functions."""
    project.write(
        eval_yaml="dataset: {path: questions.jsonl}\nmetrics: [basic/contains]\n",
        questions_jsonl='{"id": "q1", "question": "What is 2 + 3?", "answer": "5"}\n',
        mine_py="""
            def answer(question): return "It is 5."
            def modelled(sample, context): return context.model.name
        """,
    )
    return project


def test_a_flag_alone_adds_an_agent_by_its_main_option(folder: Project) -> None:
    flags = ["--agent", "python:mine.py:answer", "--agent", "python:mine.py:modelled", "-m", "python-2=simulated/any"]

    outcome = folder.keval("run", "eval.yaml", *flags)

    told = {trial["agent"]: (trial["model"], trial["output"]) for trial in folder.lines("trials.jsonl")}
    assert (0, {"python": (None, "It is 5."), "python-2": ("simulated/any", "any")}) == (outcome.code, told)


def test_an_added_agent_is_resumed_as_it_was(folder: Project) -> None:
    folder.keval("run", "eval.yaml", "--agent", "python:mine.py:answer")
    run = folder.run_directory()
    (run / "trials.jsonl").write_bytes(b"")

    outcome = folder.keval("resume", str(run))

    assert (0, ["It is 5."]) == (outcome.code, [trial["output"] for trial in folder.lines("trials.jsonl")])


@pytest.mark.parametrize(
    ("flag", "told"),
    [
        (
            "pyton:mine.py:answer",
            "--agent pyton:mine.py:answer: no agent named 'pyton' is installed; did you mean 'python'?",
        ),
        ("recorded:x.jsonl", "--agent recorded:x.jsonl: the agent 'recorded' takes no text after its name; write its"),
        ("python:none.py:answer", "--agent python:none.py:answer: 'target' must name a file that exists, and"),
        ("http:mine.py", "--agent http:mine.py: 'url' must begin with http:// or https:// and a host; got 'mine.py'"),
    ],
)
def test_a_flag_that_adds_none_says_why(folder: Project, flag: str, told: str) -> None:
    outcome = folder.keval("run", "eval.yaml", "--agent", flag)

    assert (2, f"error: {told}") == (outcome.code, outcome.stderr[: len(f"error: {told}")])


def test_a_run_does_not_go_on_with_a_function_or_a_program_that_has_changed(folder: Project) -> None:
    flags = ("--agent", "python:mine.py:answer", "--agent", "command:python say.py other/say.py")
    (folder.root / "other").mkdir()
    for name in ("say.py", "other/say.py"):
        (folder.root / name).write_text("print('It is 5.')\n", encoding="utf-8")
    assert 0 == folder.keval("run", "eval.yaml", *flags).code
    for name in ("mine.py", "say.py"):
        with (folder.root / name).open("a", encoding="utf-8") as file:
            file.write("# other\n")

    outcome = folder.keval("resume", "latest")

    told = [
        f"agent {label}: the file {name} has changed" for label, name in (("python", "mine.py"), ("command", "say.py"))
    ]
    assert (2, [True, True]) == (outcome.code, [line in outcome.stderr for line in told]), outcome.stderr
    assert "other/say.py" not in outcome.stderr  # only what has changed is named, also where names are alike
