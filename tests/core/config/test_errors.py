"""Bad input: `file:line:col: what is wrong; what to do`, exit 2, nothing run and nothing written."""

from __future__ import annotations

import pytest

from tests.conftest import Project

CONFIG = """
dataset:
  path: questions.jsonl
agents:
  scripted: {}
contexts:
  notes: {text: "Read this. "}
conditions:
  baseline: {}
  with_notes:
    contexts: [notes]
metrics:
  - double/length
"""
QUESTIONS = '{"id": "a", "question": "How?"}\n'


def changed(old: str, new: str) -> str:
    assert old in CONFIG
    return CONFIG.replace(old, new)


CASES = {
    "unknown key": (
        changed("dataset:", "datset: {}\ndataset:"),
        "eval.yaml:1:1: unknown key 'datset'; did you mean 'dataset'?",
    ),
    "missing key": (
        changed("  path: questions.jsonl", "  answer_key: golden"),
        "eval.yaml:2:3: the key 'path' is missing; add `path:` with a path",
    ),
    "missing section": (
        changed("agents:\n  scripted: {}\n", ""),
        "eval.yaml:1:1: the key 'agents' is missing; add `agents: {label: {type: …, model: provider/name}}`",
    ),
    "wrong type": (
        CONFIG + "execution:\n  max_concurrent: lots\n",
        "eval.yaml:14:19: expected a whole number, got 'lots'",
    ),
    "number as text": (
        CONFIG + 'execution:\n  max_concurrent: "3"\n',
        "eval.yaml:14:19: expected a whole number, got '3'; write 3",
    ),
    "out of range": (
        CONFIG + "execution: {num_repetitions: 0}\n",
        "eval.yaml:13:30: 'num_repetitions' must be >= 1: 0",
    ),
    "duplicate key": (
        changed("  baseline: {}\n", "  baseline: {}\n  baseline: {}\n"),
        "eval.yaml:9:3: the key 'baseline' stands here again, after line 8; keep one",
    ),
    "unknown provider": (
        CONFIG + "providers:\n  azur: {command: [az]}\n",
        "eval.yaml:14:3: no model provider named 'azur' is installed; did you mean 'azure'?",
    ),
    "unknown option of a provider": (
        CONFIG + "providers:\n  azure: {comand: [az]}\n",
        "eval.yaml:14:11: unknown key 'comand'; did you mean 'command'?",
    ),
    "wrong option of a provider": (
        CONFIG + "providers:\n  azure:\n    command: az\n",
        "eval.yaml:15:14: expected a list, got 'az'; write [az]",
    ),
    "providers in a list": (
        CONFIG + "providers: [azure]\n",
        "eval.yaml:13:12: expected a mapping of providers to options, such as `azure: {}`",
    ),
    "unknown plugin": (
        changed("scripted: {}", "scriptd: {}"),
        "eval.yaml:4:3: no agent named 'scriptd' is installed; did you mean 'scripted'?",
    ),
    "plugin that does not import": (
        changed("scripted: {}", "absent: {}"),
        (
            "eval.yaml:4:3: the agent 'absent' of keval-doubles 1.0 does not import: ModuleNotFoundError:"
            " No module named 'keval_doubles.nowhere'; reinstall keval-doubles with what it requires"
        ),
    ),
    "unknown option": (
        changed("scripted: {}", "scripted: {sufix: x}"),
        "eval.yaml:4:14: unknown key 'sufix'; did you mean 'suffix'? (agent 'scripted')",
    ),
    "wrong option of a metric": (
        changed("- double/length", "- double/length: {limit: many}"),
        "eval.yaml:12:28: expected a whole number, got 'many' (metric 'double/length')",
    ),
    "characteristics that are no mapping": (
        changed("scripted: {}", "scripted:\n    characteristics: 7"),
        "eval.yaml:5:22: expected a mapping, or the name of an agent that ships one",
    ),
    "undefined context": (
        changed("[notes]", "[note]"),
        "eval.yaml:10:16: no context named 'note'; did you mean 'notes'?",
    ),
    "context listed twice": (
        changed("[notes]", "[notes, notes]"),
        "eval.yaml:10:23: 'notes' is listed twice; keep one",
    ),
    "a variable within a variable": (
        changed("scripted: {}", "scripted: {suffix: '${A:-${B}}'}"),
        "eval.yaml:4:22: a default is plain text; ${A:-...} holds another variable (agent 'scripted')",
    ),
    "undefined baseline": (
        CONFIG + "baseline: base\n",
        "eval.yaml:13:11: no condition named 'base'; did you mean 'baseline'?",
    ),
    "no conditions": (
        changed("conditions:\n  baseline: {}\n  with_notes:\n    contexts: [notes]\n", ""),
        (
            "eval.yaml:1:1: no conditions; add at least one, such as `conditions: {baseline: {}, with_notes: {contexts:"
            " [notes]}}`"
        ),
    ),
    "a list of conditions": (
        changed("conditions:\n  baseline: {}\n  with_notes:\n    contexts: [notes]\n", "conditions: [base, with]\n"),
        (
            "eval.yaml:7:13: expected a mapping of labels to conditions, such as `baseline: {}`;"
            " write {base: {}, with: {}}"
        ),
    ),
    "characteristics that a metric checks": (
        changed("scripted: {}", "scripted: {characteristics: {files: -1}}").replace(
            "- double/length", "- weather/implementation_effort"
        ),
        "eval.yaml:4:39: expected a whole number from 1 on, got -1 (the weather metrics)",
    ),
    "a characteristic that a metric does not know": (
        changed("scripted: {}", "scripted: {characteristics: {fils: 3}}").replace(
            "- double/length", "- weather/implementation_effort"
        ),
        "eval.yaml:4:32: unknown key 'fils'; did you mean 'files'? (the weather metrics)",
    ),
    "a label with a slash": (
        changed("scripted: {}", "a/b: {type: scripted}"),
        "eval.yaml:4:3: a label is letters, digits, single spaces and _.+- only, got 'a/b'",
    ),
    "metric listed twice": (
        CONFIG + "  - double/length\n",
        "eval.yaml:13:5: 'double/length' is listed twice; keep one",
    ),
    "nothing scores": (
        changed("metrics:\n  - double/length\n", ""),
        "eval.yaml:1:1: nothing scores the answers; add `metrics:`, `judge: {model: provider/name}` or `verify:`",
    ),
    "missing environment variable": (
        changed("scripted: {}", "scripted: {suffix: '${KEVAL_TEST_UNSET}'}"),
        (
            "eval.yaml:4:22: the environment variable KEVAL_TEST_UNSET is not set; export it or write"
            " ${KEVAL_TEST_UNSET:-default} (agent 'scripted')"
        ),
    ),
    "half a variable": (
        changed("scripted: {}", "scripted: {suffix: '${VAR:default}'}"),
        (
            "eval.yaml:4:22: this is no variable; write ${NAME}, ${NAME:-default}, or $${ for a plain ${"
            " (agent 'scripted')"
        ),
    ),
    "wrong option of a context that nothing uses": (
        changed('notes: {text: "Read this. "}', 'notes: {text: "Read this. "}\n  more: {type: notes, txt: x}'),
        "eval.yaml:7:23: unknown key 'txt'; did you mean 'text'? (context 'more' of type 'notes')",
    ),
    "a scale of one level": (
        CONFIG + "judges: {strict: {}}\nrubrics: [tone: {instructions: x, levels: {1: bad}}]\n",
        "eval.yaml:14:43: Length of 'levels' must be >= 2: 1",
    ),
    "levels that stand twice": (
        CONFIG + "judges: {strict: {}}\nrubrics: [tone: {instructions: x, levels: {1: bad, 01: worse, 2: good}}]\n",
        "eval.yaml:14:43: two of the keys '1', '01', '2' are the same whole number; keep one",
    ),
    "levels without numbers": (
        CONFIG + "judges: {strict: {}}\nrubrics: [tone: {instructions: x, levels: {low: bad, high: good}}]\n",
        "eval.yaml:14:43: expected whole numbers as keys, got 'low', 'high'",
    ),
    "YAML syntax": (
        changed("agents:", "agents: ["),
        (
            "eval.yaml:3:9: not valid YAML: did not find expected ',' or ']'; close the bracket of line 3, or quote"
            ' what has one of ,[]{} in it: "${NAME}"'
        ),
    ),
    "execution that is a number": (
        CONFIG + "execution: 3\n",
        "eval.yaml:13:12: expected a mapping, got 3; write {num_repetitions: 3}",
    ),
    "unknown model provider": (
        changed("scripted: {}", "modelled: {model: opnai/gpt}"),
        "eval.yaml:4:21: opnai/gpt: no model provider named 'opnai' is installed; did you mean 'openai'?",
    ),
    "a model without provider": (
        changed("scripted: {}", "modelled: {model: gpt}"),
        "eval.yaml:4:21: a model is provider/name, such as openai/gpt-4o-mini; got 'gpt' (agent 'modelled')",
    ),
    "undefined name in a prompt": (
        changed(
            "    contexts: [notes]", "    system_prompt: 'Know {{ facts.preferences.colour }}'\n    contexts: [notes]"
        ),
        (
            "eval.yaml:10:20: for sample 'a': 'dict object' has no attribute 'preferences'; give it a default, or"
            " the samples a value"
        ),
    ),
    "broken template": (
        changed("    contexts: [notes]", "    system_prompt: 'Know {{ facts'\n    contexts: [notes]"),
        "eval.yaml:10:20: the template is not valid: unexpected end of template, expected 'end of print statement'.",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_bad_config_is_explained_at_its_place(project: Project, case: str) -> None:
    config, message = CASES[case]
    project.write(eval_yaml=config, questions_jsonl=QUESTIONS)

    outcome = project.keval("run", "eval.yaml")

    assert (2, f"error: {message}\n", "") == (outcome.code, outcome.stderr, outcome.stdout)
    assert not (project.root / "results").exists()


DATASETS = {
    "empty": ("", "eval.yaml:2:9: {q}: the dataset is empty; add at least one question"),
    "broken line": (
        '{"id": "a", "question": "How?"}\n{"id": \n',
        (
            "{q}:2:8: not valid JSON: unexpected end of data;"
            " one object a line, with no comma after it; of an array, name the file .json"
        ),
    ),
    "no question": (
        '{"id": "a", "qestion": "How?"}\n',
        "{q}:1: no question under 'question'; did you mean 'qestion'? (dataset.question_key names the key)",
    ),
    "duplicate id": (
        '{"id": "a", "question": "How?"}\n\n{"id": "a", "question": "Who?"}\n',
        "{q}:3: the id 'a' stands already in line 1; change it",
    ),
    "duplicate content": (
        '{"question": "How?"}\n{"question": "How?"}\n',
        "{q}:2: the content, and so the derived id, '09e76637dd7c' stands already in line 1; change it",
    ),
    "not an object": ("[1]\n", "{q}:1: expected an object with a question, such as {question: …}"),
    "history of no known shape": (
        '{"question": "How?", "history": [{"who": "me"}]}\n',
        "{q}:1: each item of 'history' is {role: user or assistant, content} or {user, assistant}",
    ),
}


@pytest.mark.parametrize("case", DATASETS)
def test_bad_dataset_is_explained_at_its_line(project: Project, case: str) -> None:
    content, message = DATASETS[case]
    project.write(eval_yaml=CONFIG)
    (project.root / "questions.jsonl").write_text(content, encoding="utf-8")

    outcome = project.keval("run", "eval.yaml")

    assert 2 == outcome.code
    assert f"error: {message}\n" == outcome.stderr.replace(str(project.root / "questions.jsonl"), "{q}")
    assert not (project.root / "results").exists()


def test_a_record_nested_deeply_is_no_defect(project: Project) -> None:
    project.write(eval_yaml=CONFIG)
    record = '{"question": "How?", "x": ' + "[" * 1000 + "]" * 1000 + "}\n"
    (project.root / "questions.jsonl").write_text(record, encoding="utf-8")

    outcome = project.keval("run", "eval.yaml")

    # How deep is too deep for an id to be derived from depends on Python's version.
    told = f"error: {project.root / 'questions.jsonl'}:1: nested too deeply\n"
    assert (outcome.code, outcome.stderr) == (2, told) or 0 == outcome.code


def test_every_problem_is_told_at_once(project: Project) -> None:
    config = changed("scripted: {}", "scripted: {sufix: x}").replace("double/length", "double/lenth")
    config = config.replace("[notes]", "[note]") + "execution: {max_concurrent: lots}\nnam: x\n"
    project.write(eval_yaml=config, questions_jsonl='{"id": "a"}\n{"id": "b"}\n')

    outcome = project.keval("run", "eval.yaml", "--condition", "base")

    places = [line.removeprefix("error: ").split(": ")[0] for line in outcome.stderr.splitlines()]
    assert 2 == outcome.code
    assert [
        "--condition base",
        str(project.root / "questions.jsonl:1"),
        "eval.yaml:4:14",
        "eval.yaml:10:16",
        "eval.yaml:12:5",
        "eval.yaml:13:29",
        "eval.yaml:14:1",
    ] == places


SELECTIONS = {
    "agent": (
        ["--agent", "scriptd"],
        "--agent scriptd: no agent named 'scriptd' is installed; did you mean 'scripted'?",
    ),
    "condition": (
        ["--condition", "with_note"],
        "--condition with_note: no condition named 'with_note'; did you mean 'with_notes'?",
    ),
    "sample": (["--sample-id", "b"], "--sample-id b: no sample has the id 'b'; ids are such as 'a'"),
    "model without label": (
        ["--model", "openai/gpt"],
        "--model openai/gpt: no agent or judge names a model",
    ),
    "model of an unknown label": (
        ["--model", "script=openai/gpt"],
        "--model script=openai/gpt: no agent or judge is labelled 'script'; did you mean 'scripted'?",
    ),
    "plugin to leave out": (
        ["-p", "no:double/facts"],
        "-p no:double/facts: the plugin 'double/facts' is not selected, so it cannot be blocked; remove the flag",
    ),
}


@pytest.mark.parametrize("case", SELECTIONS)
def test_selection_that_leaves_nothing_is_an_error(project: Project, case: str) -> None:
    flags, message = SELECTIONS[case]
    project.write(eval_yaml=CONFIG, questions_jsonl=QUESTIONS)

    outcome = project.keval("run", "eval.yaml", *flags)

    assert (2, f"error: {message}\n") == (outcome.code, outcome.stderr)
    assert not (project.root / "results").exists()


def test_an_alias_that_unfolds_to_too_much_is_refused(project: Project) -> None:
    levels = "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 9))
    project.write(eval_yaml=f"a0: &a0 [x, x]\n{levels}")

    outcome = project.keval("validate", "eval.yaml")

    assert 2 == outcome.code
    assert "YAML aliases are recursive or expand to too much data; write the values out" in outcome.stderr


def test_a_missing_config_is_explained(project: Project) -> None:
    outcome = project.keval("run", "nowhere.yaml")

    assert 2 == outcome.code
    assert "error: nowhere.yaml: cannot be read: " in outcome.stderr
