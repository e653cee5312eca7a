"""Mistakes of beginners: each is told at its place, with what to write in the user's own words."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Project

CONFIG = """\
dataset: {path: questions.jsonl}
agents:
  plain: {type: openai, model: simulated/weather}
contexts:
  harbour: {type: stdio, command: python, args: [harbour.py]}
conditions:
  baseline: {}
  with_harbour: {contexts: [harbour]}
metrics: [basic/contains]
"""
HARBOUR = "{type: stdio, command: python, args: [harbour.py]}"
AGENTS = "agents:\n  plain: {type: openai, model: simulated/weather}"
CONDITIONS = "conditions:\n  baseline: {}\n  with_harbour: {contexts: [harbour]}"
RUBRIC = "it is a rubric: list it under `rubrics:`, and add a judge, `judge: {model: provider/name}`"
TYPES = "types: http, instructions,"
LISTED = "expected a list of names, or of `name: {options}`"

# What stands in the config, what the mistake is, and what is told: its place, and what to do.
MISTAKES = {
    "a rubric as a metric": ("basic/contains", "factual_adherence", "9:11", RUBRIC),
    "rubrics without a judge": (
        "metrics: [basic/contains]",
        "rubrics: [preference]",
        "9:1",
        "add `metrics:`, `judge: {model: provider/name}` or",
    ),
    "a judge by its model": ("metrics:", "judge: a/b\nmetrics:", "9:8", "write {model: a/b}"),
    "judges by their model": ("metrics:", "judges: [a/b]\nmetrics:", "9:9", "write {judge: {model: a/b}}"),
    "a command without a type": ("type: stdio, ", "", "5:3", f"if that is its label, add `type: stdio`; {TYPES}"),
    "a URL without a type": (HARBOUR, "{url: http://x/mcp}", "5:3", "add `type: http` or `type: sse`; types:"),
    "a file without a type": (HARBOUR, "{path: prompt.md}", "5:3", "add `type: instructions`; types:"),
    "a skill without a type": (HARBOUR, "{path: skills/harbour}", "5:3", "add `type: skill`; types:"),
    "nothing but a label": (HARBOUR, "{}", "5:3", f"if that is its label, add `type:`; {TYPES}"),
    "a server by its URL": (HARBOUR, "http://x/mcp", "5:12", "write {type: http, url: 'http://x/mcp'}"),
    "a server by its command": (HARBOUR, "uvx mcp-tugs", "5:12", "write {type: stdio, command: uvx, args: [mcp-tugs]}"),
    "contexts in a list": ("  harbour: {", "  - harbour: {", "5:3", f"write {{harbour: {HARBOUR}}}"),
    "an argument alone": ("[harbour.py]", "harbour.py", "5:49", "write [harbour.py]"),
    "an argument that is a number": ("harbour.py]", "80]", "5:50", "expected a text, got 80; put it in quotes"),
    "variables in a list": ("args: [", "env: [PORT=80], args: [", "5:48", "write {PORT: '80'}"),
    "agents by a name": (AGENTS, "agents: openai", "2:9", "write {openai: {type: openai}}"),
    "agents in a list": (AGENTS, "agents: [openai]", "2:9", "write {openai: {type: openai}}"),
    "an agent by its type": (AGENTS[10:].partition(": ")[2], "openai", "3:10", "write {type: openai}"),
    "an agent without a type": ("type: openai, ", "", "3:3", "`type: ms` or `type: openai`; types: "),
    "labels that are not indented": ("  plain: {", "plain: {", "3:1", "if it belongs to `agents:` above it, indent it"),
    "a context alone": ("[harbour]", "harbour", "8:28", "expected a list, got 'harbour'; write [harbour]"),
    "a condition by its contexts": ("{contexts: [harbour]}", "[harbour]", "8:17", "write {contexts: [harbour]}"),
    "conditions by name": (CONDITIONS, "conditions: [a, b]", "6:13", "write {a: {}, b: {}}"),
    "a metric alone": ("[basic/contains]", "basic/contains", "9:10", f"{LISTED}; write [basic/contains]"),
    "metrics in a mapping": ("[basic/contains]", "{a: {b: 1}}", "9:10", f"{LISTED}; write [{{a: {{b: 1}}}}]"),
    "options that are not indented": ("[basic/contains]", "[{a: , b: 1}]", "9:11", "indent its options below it"),
    "a gate alone": ("metrics:", "gates: a >= 1\nmetrics:", "9:8", "write [a >= 1]"),
    "a check alone": ("metrics:", "verify: {name: a, command: ls}\nmetrics:", "9:9", "write [{name: a, command: ls}]"),
    "a number for execution": ("metrics:", "execution: 3\nmetrics:", "9:12", "write {num_repetitions: 3}"),
    "yes in quotes": ("metrics:", "execution: {keep_requests: 'yes'}\nmetrics:", "9:28", "write true"),
    "a plugin of another kind": ("metrics:", "plugins: [basic/contains]\nmetrics:", "9:11", "kind of plugin: metric"),
    "no as a type": ("type: openai", "type: no", "3:17", "expected the name of a plugin; put it in quotes"),
    "the dataset alone": ("{path: questions.jsonl}", "questions.jsonl", "1:10", "write {path: questions.jsonl}"),
    "a dataset that is not there": ("questions.j", "question.j", "1:17", "; did you mean 'questions.jsonl'?"),
    "a folder that is not there": ("questions.j", "skils/q.j", "1:17", "there is no folder 'skils' in {here}; did you"),
    "a skill that is not there": (HARBOUR, "{type: skill, path: skill/harbour}", "5:32", "did you mean 'skills'?"),
    "instructions that are not there": (HARBOUR, "{type: instructions, path: promt.md}", "5:39", "mean 'prompt.md'?"),
    "a program that is not there": (
        "openai, model: simulated/weather",
        "python, target: agnt.py:f",
        "3:33",
        "'agent.py'?",
    ),
    "answers that are not there": (
        "openai, model: simulated/weather",
        "recorded, path: a.jsonl",
        "3:3",
        "/a.jsonl: the",
    ),
    "a rubric that is not there": (
        "metrics:",
        "rubrics: [promt.yaml]\nmetrics:",
        "9:11",
        "/promt.yaml: cannot be read",
    ),
    "a tab": ("  plain: {", "\tplain: {", "3:1", "indent with blanks, not with tabs"),
    "no blank after a colon": ("dataset: {", "dataset:{", "1:1", "write a blank after the colon: `dataset: {path`"),
    "no blank in braces": ("{path: q", "{path:q", "1:11", "write a blank after the colon: `path: questions.jsonl`"),
    "no blank below a key": (" {path: questions.jsonl}", "\n  path:q.csv", "2:3", "write {path: q.csv}"),
    "no blank before a list": ("metrics: [", "metrics:[", "9:1", "write a blank after the colon of a key"),
    "a quote that is open": ("path: q", "path: 'q", "1:17", "close the quote that begins here"),
    "a bracket that is open": ("[basic/contains]", "[basic/contains", "9:10", "close the bracket of line 9"),
    "a variable in braces": ("simulated/weather", "${MODEL}", "3:33", 'quote what has one of ,[]{} in it: "${NAME}"'),
    "a colon in a text": ("baseline: {}", "baseline: a: b", "7:14", "quote a text with `: ` in it"),
    "a text that begins with @": ("type: openai", "type: @openai", "3:17", "quote a text that begins with @"),
    "a backslash": ("questions.jsonl", '"a\\q"', "1:19", "write \\\\ for a backslash in double quotes"),
    "a line that stands too far right": ("  with_h", "   with_h", "8:4", "begin it in column 3, as line 7 does"),
    "a line that stands too far left": ("  with_h", " with_h", "8:2", "begin it in column 3, as line 7 does"),
    "two documents": ("metrics:", "---\nmetrics:", "9:1", "remove the line ---"),
}


def lay_out(folder: Path) -> None:
    (folder / "questions.jsonl").write_text('{"id": "a", "question": "How?"}\n', encoding="utf-8")
    (folder / "prompt.md").write_text("Be brief.\n", encoding="utf-8")
    (folder / "agent.py").write_text("def f(question):\n    return question\n", encoding="utf-8")
    (folder / "skills" / "harbour").mkdir(parents=True)
    skill = "---\nname: harbour\ndescription: How to moor.\n---\nMoor.\n"
    (folder / "skills" / "harbour" / "SKILL.md").write_text(skill, encoding="utf-8")


@pytest.mark.parametrize("case", MISTAKES)
def test_a_mistake_is_told_at_its_place_with_what_to_write(project: Project, case: str) -> None:
    old, new, place, remedy = MISTAKES[case]
    assert old in CONFIG
    lay_out(project.root)
    (project.root / "eval.yaml").write_text(CONFIG.replace(old, new), encoding="utf-8")

    outcome = project.keval("validate", "eval.yaml")

    told = [line for line in outcome.stderr.split("error: ") if line.startswith(f"eval.yaml:{place}: ")]
    assert 2 == outcome.code
    assert any(remedy in line.replace(str(project.root), "{here}") for line in told), outcome.stderr


FILES = {
    "Latin-1": ("q.jsonl", b'{"question": "Gr\xfcn?"}', "eval.yaml:1:17: ", "not UTF-8 at byte 17; save it as UTF-8"),
    "commas after lines": ("q.jsonl", b'{"question": 1},\n' * 2, "{here}/q.jsonl:1:16: ", "with no comma after it"),
    "an array": ("q.jsonl", b'[\n{"question": "a"}]\n', "{here}/q.jsonl:1:2: ", "of an array, name the file .json"),
    "semicolons": ("q.csv", b"id;question\na;b\n", "{here}/q.csv:1: ", '`delimiter: ";"` beside `path:`'),
    "tabs": ("q.csv", b"id\tquestion\na\tb\n", "{here}/q.csv:1: ", '`delimiter: "\\t"` beside `path:`'),
    "a comma in a cell": ("q.csv", b"id,question\na,b, c\n", "{here}/q.csv:2: ", "quote a cell that has the sep"),
    "no list": ("q.yaml", b"question: a\n", "{here}/q.yaml:1:1: ", "expected a list of records: `- question: …`"),
    "another suffix": ("q.txt", b"How?\n", "eval.yaml:1:17: ", "`dataset.type` says the format"),
}  # fmt: skip


@pytest.mark.parametrize("case", FILES)
def test_a_dataset_of_another_form_is_told_with_what_to_do(project: Project, case: str) -> None:
    name, content, place, remedy = FILES[case]
    lay_out(project.root)
    (project.root / name).write_bytes(content)
    project.write(eval_yaml=CONFIG.replace("questions.jsonl", name))

    outcome = project.keval("validate", "eval.yaml")

    told = outcome.stderr.replace(str(project.root), "{here}")
    assert (2, True, True) == (outcome.code, told.startswith(f"error: {place}"), remedy in told), told


def test_byte_order_marks_and_line_ends_of_windows_are_read(project: Project) -> None:
    lay_out(project.root)
    (project.root / "eval.yaml").write_bytes(b"\xef\xbb\xbf" + CONFIG.replace("\n", "\r\n").encode())
    (project.root / "questions.jsonl").write_bytes(b'\xef\xbb\xbf{"question": "How?"}\r\n')

    assert 0 == project.keval("validate", "eval.yaml").code


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--agent", "plian"], "--agent plian: no agent is labelled 'plian'; did you mean 'plain'?"),
        (["-p", "basic/contains"], "-p basic/contains: no hook plugin named 'basic/contains' is installed;"),
        (["--executor", "locla"], "--executor locla: no executor named 'locla' is installed; did you mean 'local'?"),
        (["--metric", "contians"], "--metric contians: no metric named 'contians' is installed; did you mean 'basic/"),
        (["--agent", "anthropic", "-m", "plain=a/b"], "--model plain=a/b: no agent or judge is labelled 'plain'"),
    ],
)
def test_a_mistake_in_an_option_is_told_with_the_option(project: Project, flags: list[str], message: str) -> None:
    lay_out(project.root)
    project.write(eval_yaml=CONFIG)

    outcome = project.keval("validate", "eval.yaml", *flags)

    assert (2, True) == (outcome.code, f"error: {message}" in outcome.stderr), outcome.stderr


def test_a_secret_that_is_written_out_is_not_told(project: Project) -> None:
    lay_out(project.root)
    entry = "- harbour: {url: http://x, headers: {Authorization: hunter2}, note: sk-hunter2-hunter2}"
    project.write(eval_yaml=CONFIG.replace(f"harbour: {HARBOUR}", entry))

    outcome = project.keval("validate", "eval.yaml")

    assert "write {harbour: {url: 'http://x', headers: {Authorization: …}, note: …}}\n" in outcome.stderr
    assert "hunter2" not in outcome.stderr


def test_a_value_of_a_variable_is_not_told(project: Project) -> None:
    lay_out(project.root)
    project.write(eval_yaml=CONFIG.replace("[harbour.py]", '"${MY_ARGS}"'))

    outcome = project.keval("validate", "eval.yaml", env={"MY_ARGS": "hunter2-hunter2"})

    assert (2, False) == (outcome.code, "hunter2" in outcome.stderr), outcome.stderr
