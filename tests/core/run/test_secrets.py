"""What came out of a secret variable is replaced in all that a run leaves, in whatever form; scores stay the same."""

from __future__ import annotations

import json

import attrs
import pytest

from keval.records.models import Endpoint
from keval_doubles.agents import Paid
from tests.canaries import forms, leaks
from tests.conftest import Project

SECRET = 'öko/te"st+ ==?\nzweite Zeile'
CONFIG = """
dataset: {path: questions.jsonl}
agents: {scripted: {}}
contexts: {web: {type: notes, headers: {Authorization: "Bearer ${CANARY}"}}}
conditions: {it: {contexts: [web]}}
metrics: [double/length]
"""


FORMS = forms(SECRET)


def test_no_form_of_a_secret_reaches_the_disk_and_scoring_again_gives_the_same(project: Project) -> None:
    questions = [
        {"id": f"s{index}", "question": "How?", "says": f"it is {form}!"} for index, form in enumerate(FORMS.values())
    ]
    lines = "".join(json.dumps(question) + "\n" for question in questions)
    project.write(eval_yaml=CONFIG, questions_jsonl=lines)

    outcome = project.keval("run", "eval.yaml", "--json", env={"CANARY": SECRET})

    scores, summary = project.lines("scores.jsonl"), project.read("summary.json")
    again = project.keval("score", "latest", "--json", env={"CANARY": SECRET})
    alone = project.keval("score", "latest", "--json", env={"CANARY": "something else"})
    assert (0, 0, 0) == (outcome.code, again.code, alone.code)
    assert [] == [line["sample"] for line in project.lines("trials.jsonl") if "[secret]" not in line["output"]]
    assert [] == leaks({"CANARY": SECRET}, [outcome.stdout, outcome.stderr], project.root, ["questions.jsonl"])
    assert (scores, summary) == (project.lines("scores.jsonl"), project.read("summary.json"))
    assert outcome.data == again.data == alone.data
    assert f"note: ${{CANARY}} was replaced by [secret] in {2 * len(FORMS)} lines" in outcome.stderr


def test_a_part_of_an_address_is_secret_too(project: Project) -> None:
    told = ["failed for s3cr3t-pw", "at db.example/main?", "with key k-0123456"]
    lines = "".join(json.dumps({"question": f"{text}?", "says": text}) + "\n" for text in told)
    config = CONFIG.replace("headers: {Authorization: ", "headers: {X: ")
    project.write(eval_yaml=config, questions_jsonl=lines)

    address = "postgres://me:s3cr3t-pw@db.example/main?key=k-0123456"
    outcome = project.keval("run", "eval.yaml", "-q", env={"CANARY": address})

    said = {"failed for [secret]", "at [secret]?", "with key [secret]"}
    assert (0, said) == (outcome.code, {line["output"] for line in project.lines("trials.jsonl")})


@pytest.mark.parametrize(
    ("where", "hidden"),
    [
        ("contexts: {c: {type: stdio, command: x, env: {DSN: '${CANARY}'}}}", True),
        ("contexts: {c: {type: stdio, command: x, args: [--dsn, '${CANARY}']}}", True),
        ("contexts: {c: {type: http, url: 'http://h/${CANARY}'}}", True),
        ("contexts: {c: {type: http, url: 'http://h', headers: {X: '${CANARY}'}}}", True),
        ("conditions: {it: {system_prompt: 'Say ${CANARY} never'}}", True),
        ("contexts: {c: {type: notes, text: 'This is ${CANARY}.'}}", True),
        ("contexts: {c: {type: notes, text: '${CANARY}'}}", False),
        ("contexts: {c: {type: stdio, command: x, env: {DSN: '${OTHER:-sk-canary}'}}}", False),
        ("contexts: {c: {type: stdio, command: x, cwd: '/tmp/${CANARY}'}}", False),
        ("contexts: {c: {type: '${CANARY_TYPE:-notes}'}}", False),
        ("public: [CANARY]\ncontexts: {c: {type: stdio, command: x, env: {DSN: '${CANARY}'}}}", False),
    ],
)
def test_where_a_variable_stands_says_whether_it_is_secret(project: Project, where: str, hidden: bool) -> None:
    conditions = "" if "conditions:" in where else "\nconditions: {it: {}}"
    config = f"dataset: {{path: q.jsonl}}\nagents: {{scripted: {{}}}}\nmetrics: [double/length]\n{where}{conditions}\n"
    project.write(eval_yaml=config, q_jsonl='{"question": "Is it sk-canary?", "says": "sk-canary"}\n')

    outcome = project.keval("run", "eval.yaml", "-q", env={"CANARY": "sk-canary"})

    (trial,), (sample,) = project.lines("trials.jsonl"), project.lines("samples.jsonl")
    told = "[secret]" if hidden else "sk-canary"
    assert (0, True, f"Is it {told}?") == (outcome.code, trial["output"].endswith(told), sample["question"])


def test_an_agent_is_asked_what_the_dataset_says(project: Project) -> None:
    project.write(eval_yaml=CONFIG, questions_jsonl='{"id": "a", "question": "sk-canary-1"}\n')

    outcome = project.keval("run", "eval.yaml", env={"CANARY": "sk-canary-1"})

    (trial,) = project.lines("trials.jsonl")
    assert (0, "[secret]") == (outcome.code, trial["output"])
    # The sample's line, and that of the trial, which repeats the question.
    assert "replaced by [secret] in 2 lines" in outcome.stderr


def test_a_key_that_an_agent_has_of_its_own_is_not_written_with_the_samples(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def prepare(agent: Paid) -> None:
        agent.model = attrs.evolve(agent.model, endpoint=Endpoint("m", {}, "sk-canary-1"))

    monkeypatch.setattr(Paid, "prepare", prepare)
    config = CONFIG.replace("${CANARY}", "x").replace("scripted: {}", "paid: {type: double/paid, model: simulated/m}")
    project.write(eval_yaml=config, questions_jsonl='{"id": "a", "question": "Is it sk-canary-1?"}\n')

    outcome = project.keval("run", "eval.yaml", "-q")

    assert 0 == outcome.code, outcome.stderr
    assert ["Is it [secret]?"] == [sample["question"] for sample in project.lines("samples.jsonl")]


def test_what_is_attached_is_kept_without_secrets_under_the_digest_of_what_is_kept(project: Project) -> None:
    sample = {"id": "a", "question": "How?", "attaches": "the key is sk-canary-1"}
    project.write(eval_yaml=CONFIG, questions_jsonl=json.dumps(sample) + "\n")

    outcome = project.keval("run", "eval.yaml", "-q", env={"CANARY": "sk-canary-1"})

    (trial,), (blob,) = project.lines("trials.jsonl"), (project.run_directory() / "blobs").iterdir()
    assert (0, "the key is [secret]", blob.name) == (outcome.code, blob.read_text(encoding="utf-8"), trial["output"])


def test_a_word_of_the_format_may_be_a_secret(project: Project) -> None:
    call = {"name": "look", "arguments": {"where": "here"}, "result": "nothing"}
    config = CONFIG.replace("{type: notes,", "{type: notes, tools: [look], direct: true,")
    project.write(eval_yaml=config, questions_jsonl=json.dumps({"id": "a", "question": "?", "calls": [call]}) + "\n")

    for word in ("arguments", "transcript", "assistant", "secret", "messages", "question"):
        outcome = project.keval("run", "eval.yaml", "-q", "-o", word, env={"CANARY": word})
        shown = project.keval("show", "latest", "-o", word, "--json", "--trial", "scripted/it/a/1")

        (made,) = shown.data["transcript"]["tool_calls"]
        assert (0, call["arguments"]) == (outcome.code, made["arguments"])


def test_a_short_secret_and_a_name_that_frees_nothing_are_told(project: Project) -> None:
    project.write(eval_yaml=f"{CONFIG}public: [CANARI, OTHER]\n", questions_jsonl='{"question": "?"}\n')

    outcome = project.keval("validate", "eval.yaml", env={"CANARY": "1234"})

    assert 0 == outcome.code
    assert "note: eval.yaml:3:56: the value of ${CANARY} is shorter than 6 characters" in outcome.stderr
    assert "1234" not in outcome.stderr
    assert (
        "note: eval.yaml:6:10: no value uses ${CANARI}, so this entry has no effect; did you mean 'CANARY'?"
        in outcome.stderr
    )


@pytest.mark.parametrize("url", ["postgres://me:hunter2@h/db", "https://${ME:-a:b}:hunter2@h/mcp", "http://:pw@h/"])
def test_a_password_that_is_written_into_an_address_is_refused(project: Project, url: str) -> None:
    config = CONFIG.replace("Bearer ${CANARY}", url)
    project.write(eval_yaml=config, questions_jsonl='{"question": "?"}\n')

    outcome = project.keval("run", "eval.yaml")

    assert 2 == outcome.code
    assert outcome.stderr.startswith(
        "error: eval.yaml:3:56: use a variable such as ${PASSWORD} for the password in the address"
    )
    assert "hunter2" not in outcome.stderr


@pytest.mark.parametrize(
    "url", ["postgres://me:${CANARY}@h/db", "https://${ME:-a:b}:${CANARY}@h/mcp", "http://a@h:80/"]
)
def test_a_password_that_is_a_variable_is_taken(project: Project, url: str) -> None:
    project.write(eval_yaml=CONFIG.replace("Bearer ${CANARY}", url), questions_jsonl='{"question": "?"}\n')

    outcome = project.keval("run", "eval.yaml", "-q", env={"CANARY": "hunter2"})

    assert 0 == outcome.code, outcome.stderr
