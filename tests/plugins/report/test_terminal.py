"""What others write reaches a terminal without what the terminal would obey, by whichever door it comes."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Project
from tests.printed import printed

# Clears the screen, fills the clipboard, forges a link, rings, moves the cursor, turns writing round, hides letters.
HOSTILE = "\x1b[2J\x1b]52;c;ZXZpbA==\x07\x1b]8;;http://evil\x1b\\x\x1b]8;;\x1b\\\x9b31m\b\r\u202eevil\u2066\U000e0041"
SERVER = f"import sys; sys.stderr.buffer.write({HOSTILE.encode()!r}); sys.exit(3)"
CONFIG = {
    "dataset": {"path": "questions.jsonl"},
    "agents": {"scripted": {}},
    "conditions": {"it": {}},
    "metrics": ["double/length"],
}


def written(project: Project, **changes: object) -> None:
    sample = {"id": f"s {HOSTILE}", "question": f"How? {HOSTILE}", "says": f"So. [red]{HOSTILE}", "seen": []}
    config = json.dumps({**CONFIG, **changes}).replace("\\udb40\\udc41", "\\U000e0041")  # as YAML writes it
    project.write(eval_yaml=config, questions_jsonl=json.dumps(sample) + "\n")


def shown(*args: str, code: int) -> str:
    found, output = printed(*args)
    assert code == found, output
    return output


def obeyed(text: str) -> list[str]:
    """The characters that a terminal obeys, or hides."""
    return sorted({char for char in text if not (char.isprintable() or char == "\n")})


@pytest.mark.parametrize("command", ["validate", "run"])
def test_a_config_in_an_error(project: Project, command: str) -> None:
    written(project, neutral=HOSTILE, agents={HOSTILE: {}, "a": {"type": HOSTILE}}, **{HOSTILE: 1})

    told = shown(command, "eval.yaml", code=2)

    assert ([], True) == (obeyed(told), "evil" in told)


def test_the_standard_error_of_a_server_that_dies(project: Project) -> None:
    server = {"type": "stdio", "command": sys.executable, "args": ["-c", SERVER]}
    written(project, contexts={"srv": server}, conditions={"it": {"contexts": ["srv"]}})

    told = shown("run", "eval.yaml", code=2)

    assert ([], True) == (obeyed(told), "its standard error ends:" in told and "evil" in told)


def test_what_an_agent_says_and_is_asked(project: Project) -> None:
    written(project)
    run = shown("run", "eval.yaml", code=0)
    (trial,) = (line["id"] for line in project.lines("trials.jsonl"))

    told = [shown("show", "latest", code=0), shown("show", "latest", "--trial", trial, code=0)]
    machine = shown("show", "latest", "--trial", trial, "--json", code=0)

    assert [[], [], [], []] == [*map(obeyed, [run, *told, machine])]
    assert [True] * 3 == ["[red]" in text and "evil" in text for text in [*told, machine]]


def test_a_run_directory_of_a_stranger(project: Project) -> None:
    written(project)
    shown("run", "eval.yaml", code=0)
    for name in ("manifest.json", "trials.jsonl", "scores.jsonl"):
        path = project.run_directory() / name
        text = path.read_text(encoding="utf-8")
        for word in ("scripted", '"it"', '"eval"', "double/length"):
            hostile = json.dumps(f"{word.strip(chr(34))}{HOSTILE}")
            text = text.replace(word, hostile if word.startswith('"') else hostile[1:-1])
        path.write_text(text, encoding="utf-8")

    told = [shown(*args, code=0) for args in (["report", "latest"], ["list"], ["show", "latest"])]

    assert [[], [], []] == [*map(obeyed, told)]
    assert all("evil" in text for text in told)


def test_a_defect_and_the_wrong_usage(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    written(project)

    def broken(evaluation: object) -> None:
        raise RuntimeError(f"evil {HOSTILE}")

    monkeypatch.setattr("keval.plan.build.make_plan", broken)
    told = shown("run", "eval.yaml", code=70)
    usage = shown("run", f"--{HOSTILE}", code=2)

    assert ([], []) == (obeyed(told), obeyed(usage))
    assert ("Traceback" in told, "No such option" in usage) == (True, True)


@pytest.mark.slow
def test_a_terminal_gets_nothing_to_obey_from_warnings_and_logs(project: Project) -> None:
    """In a process of its own, on a real terminal: pytest takes log records away from keval."""
    written(project, plugins=[{"double/clumsy": {"says": f"evil {HOSTILE}", "warns": True}}])
    master, terminal = pty.openpty()
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TERM": "dumb", "NO_COLOR": "1"}

    with subprocess.Popen(
        [sys.executable, "-m", "keval", "run", "eval.yaml"],
        cwd=project.root,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=terminal,
        stderr=terminal,
    ) as process:
        os.close(terminal)
        told = _all_of(master)

    assert (0, []) == (process.returncode, obeyed(told.replace("\r\n", "\n")))
    lines = told.splitlines()
    log = next((project.root / "results").glob("eval/*/warnings.log")).read_text(encoding="utf-8")
    assert 2 <= told.count("evil\N{REPLACEMENT CHARACTER}"), told
    assert any(line.startswith("warning: ") for line in lines)
    assert ([], True) == (obeyed(log), "evil" in log)


def _all_of(master: int) -> str:
    content = b""
    while True:
        try:
            read = os.read(master, 65536)
        except OSError:  # Linux says so that the other side is closed
            break
        if not read:
            break
        content += read
    os.close(master)
    return content.decode("utf-8")


def test_what_is_harmless_is_shown_as_it_is(project: Project) -> None:
    text = "Zażółć 10\u00a0km 3\u202f000 日本\u3000語 👩\u200d🔬 naïve e\u0301"
    project.write(eval_yaml=json.dumps(CONFIG), questions_jsonl=json.dumps({"id": "a", "question": text}) + "\n")
    shown("run", "eval.yaml", code=0)

    assert text in shown("show", "latest", "--trial", "scripted/it/a/1", code=0)
    assert Path("results").is_dir()
