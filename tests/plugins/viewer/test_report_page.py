"""The page of a run: what it says, that each part is HTML by itself, and that nothing of others is more than text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import quote

import attrs
import pytest

from keval import open_run
from keval_analysis.findings.effects import Arm, Effect
from keval_analysis.findings.summary import Cost, GateResult, UnmetExpectation
from keval_report.report import Report
from keval_viewer.report_page import FRAGMENTS, answers, page
from tests import hostile
from tests.conftest import Project

VOID = {"meta", "link", "input", "br", "img"}


class Elements(HTMLParser):
    """Reads HTML strictly: notes each element with its attributes, the text, and what is closed wrongly."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.wrong: list[str] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self._open: list[str] = []
        self.feed(html)
        self.close()
        self.wrong += self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)
        if tag == "script":
            self.scripts.append((dict(attrs), ""))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open.pop() != tag:
            self.wrong.append(f"/{tag}")
        self.text += " " if tag in ("td", "th") else ""

    def handle_data(self, data: str) -> None:
        if self._open[-1:] == ["script"]:
            self.scripts[-1] = (self.scripts[-1][0], self.scripts[-1][1] + data)
        elif self._open[-1:] != ["style"]:
            self.text += data

    def handle_comment(self, data: str) -> None:
        self.wrong.append(f"<!--{data}")


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    run = open_run(hostile.run(Project(tmp_path_factory.mktemp("page"))))
    return Report(run, run.summary())


def embedded(html: str) -> Iterator[Any]:
    """What a page holds as data."""
    yield from (json.loads(text) for attributes, text in Elements(html).scripts if attributes.get("type"))


def test_every_part_is_whole_and_has_only_kevals_own_elements(report: Report) -> None:
    parts = {name: str(fragment(report)) for name, fragment in FRAGMENTS.items()}
    parts["answers"] = str(answers(report, 0))
    read = {name: Elements(html) for name, html in parts.items()}

    assert {} == {name: found.wrong for name, found in read.items() if found.wrong}
    foreign = {"img", "template", "iframe", "object", "a", "link", "style"}
    links = [given for tag, given in read.pop("claims").found if tag == "a"]
    flagged = [question.id for question in report.outline.questions if question.claims for _ in range(question.claims)]
    assert [{"href": f"#sample-{quote(name, safe='')}"} for name in flagged] == links
    assert [] == [(name, tag) for name, found in read.items() for tag, _ in found.found if tag in foreign]
    handlers = [
        (name, key) for name, found in read.items() for _, given in found.found for key in given if key.startswith("on")
    ]
    assert [] == handlers
    kinds = {given.get("type") for found in read.values() for tag, given in found.found if tag == "script"}
    assert {"application/json"} == kinds


def test_what_others_wrote_shows_as_it_was_written(report: Report) -> None:
    shown = Elements(str(answers(report, 1))).text

    wanted = {
        "answer": f"{hostile.EVERYTHING} 1",
        "tool": f"look {hostile.LABEL}",
        "claim": f"claim 1 {hostile.EVERYTHING}",
        "judge": f"judge-label {hostile.LABEL}",
        "condition": f"condition-label {hostile.LABEL}",
        "result": hostile.INJECTIONS[1],
        "fact": json.dumps(hostile.INJECTIONS[4])[1:-1],
    }
    assert [] == [name for name, text in wanted.items() if text not in shown]


def test_a_page_embeds_the_same_answers_that_a_server_would_give(report: Report) -> None:
    html = "".join(page(report))

    assert [] == Elements(html).wrong
    assert str(answers(report, 2)) in [*embedded(html)]
    ids = [given["id"] for tag, given in Elements(html).found if tag == "details" and given.get("id")]
    assert {f"sample-{quote(question.id, safe='')}" for question in report.outline.questions} == set(ids)


def test_the_policy_lets_nothing_but_the_pages_own_script_run(report: Report) -> None:
    read = Elements("".join(page(report)))

    (policy,) = [given["content"] for _, given in read.found if given.get("http-equiv") == "Content-Security-Policy"]
    assert policy is not None
    rules = dict(rule.split(" ", 1) for rule in policy.split("; "))
    assert "'none'" == rules.pop("default-src")
    assert re.fullmatch(r"'sha256-[\w+/]+='", rules.pop("script-src"))
    assert re.fullmatch(r"'sha256-[\w+/]+='", rules.pop("style-src"))
    assert {"img-src": "data:", "base-uri": "'none'", "form-action": "'none'"} == rules
    assert [] == [given for _, given in read.found if "src" in given or "style" in given]
    assert ["data:,"] == [given["href"] for tag, given in read.found if tag == "link"]


def test_the_worst_questions_come_first_and_what_is_left_out_is_said(report: Report) -> None:
    whole, small = "".join(page(report)), "".join(page(report, most_bytes=30_000))

    held = [given["id"] for tag, given in Elements(small).found if (given.get("id") or "").startswith("answers-")]
    assert "answers-5" == held[0]  # its trial failed
    assert 1 <= len(held) < 6
    assert f"The answers to {6 - len(held)} of 6 questions are left out" in Elements(small).text
    assert "are left out, as" not in Elements(whole).text


def test_effects_show_their_interval_and_verdict_or_that_there_is_none(report: Report) -> None:
    agent, condition = report.arms[1]
    run = report.run.id
    against = Arm(agent, report.arms[0][1], run)
    length, equals, _, brevity = [entry.scorer for entry in report.summary.scorers]
    sure = Effect(
        *equals, agent, condition, against, 30, -0.25, 0.05, run=run, ci_low=-0.35, ci_high=-0.15, verdict="worse"
    )
    unsure = Effect(*brevity, agent, condition, against, 1, 0.5, None, run=run)
    open_one = attrs.evolve(sure, metric=length[0], judge=length[1], verdict="unclear", needed_samples=(38, 44))
    summary = attrs.evolve(report.summary, effects=(unsure, open_one, sure), interactions=())

    shown = " ".join(Elements(str(FRAGMENTS["effects"](Report(report.run, summary)))).text.split())

    wanted = (
        "-0.25 [-0.35, -0.15] 30 questions worse",
        "-0.25 [-0.35, -0.15] 30 questions cannot tell: 38 to 44 questions would",
    )
    places = [shown.find(text) for text in (*wanted, "+0.50 – 1 question one question")]
    assert -1 < min(places)
    assert places[0] < places[1]  # what is sure comes first


def test_gates_show_their_verdict_and_what_they_were_decided_on(report: Report) -> None:
    gate = GateResult("length >= 0.8", "failed", 0.7, 0.6, 0.8, "mean", "0.70 is less")
    unmet = UnmetExpectation("q1", "a", "docs", 2, "contains '<b>'", "no")
    held = attrs.evolve(gate, gate="length >= 0.5", verdict="held")
    gated = Report(report.run, attrs.evolve(report.summary, gates=(held, gate), unmet=(unmet,)))
    html = "".join(page(gated))

    read = Elements(str(FRAGMENTS["gates"](gated)))
    shown, folded = (" ".join(part.split()) for part in read.text.split("1 held"))

    assert html.index('id="effects"') < html.index('id="gates"') < html.index('id="questions"')
    assert [{"class": "gates"}] == [given for tag, given in read.found if tag == "details"]  # which is closed
    assert "held length >= 0.5" in folded
    assert "failed length >= 0.8 0.70 [0.60, 0.80]; 0.70 is less" in shown
    assert "q1, a docs, repetition 2: expected: it contains '<b>'; answer: no" in shown
    assert "" == str(FRAGMENTS["gates"](report)).strip()


def test_what_a_run_cost_is_said_once(report: Report) -> None:
    priced = [attrs.evolve(arm, cost=Cost(0.25)) for arm in report.summary.trials]
    paid = Report(report.run, attrs.evolve(report.summary, trials=tuple(priced)))
    texts = [{name: Elements(str(FRAGMENTS[name](each))).text for name in FRAGMENTS} for each in (report, paid)]

    said = [[name for name, text in shown.items() if "$" in text] for shown in texts]

    # What an arm cost has a column only where something was to be paid.
    assert [[], ["header", "trials"]] == said
    assert "trials or judgements unknown" in texts[0]["header"]
    assert f"· ${0.25 * len(priced):.2f}" in texts[1]["header"]


def test_cautions_follow_what_was_found(report: Report) -> None:
    (first, *others) = report.summary.trials
    failing = attrs.evolve(first, failed=first.trials)
    cautioned = Report(report.run, attrs.evolve(report.summary, trials=(failing, *others)))

    shown = " ".join(Elements(str(FRAGMENTS["findings"](cautioned))).text.split())

    told = f"caution: {first.trials} of {first.trials} trials of {first.agent} {first.condition} failed"
    assert told in shown
    assert told not in Elements(str(FRAGMENTS["findings"](report))).text


def test_slices_go_by_each_key_that_divides_the_questions(report: Report) -> None:
    shown = " ".join(Elements(str(FRAGMENTS["slices"](report))).text.split())

    assert f"by kind {hostile.LABEL}" in shown
    assert f"even {hostile.LABEL} 3 odd {hostile.LABEL} 3" in shown
    assert "by level" in shown
    assert re.search(r"length \+0\.99 \[-0\.\d\d, \+0\.99\] \+0\.99 \[-0\.\d\d, \+0\.99\] n=2 equals", shown)


def test_slices_count_questions_of_one_source_together(project: Project) -> None:
    """Four documents with three questions each, which all rise by as much: as good as four questions, not twelve."""
    names = [f"{document}{number}" for document in "abcd" for number in range(3)]
    rises = dict(zip("abcd", (0.1, 0.3, 0.5, 0.7), strict=True))
    project.write(
        q_jsonl="".join(json.dumps({"id": n, "question": "?", "kind": "x", "document": n[0]}) + "\n" for n in names)
        + json.dumps({"id": "e", "question": "?", "kind": "y"}),
        one_jsonl="".join(
            json.dumps({"id": name, "condition": condition, "response": str(0.1 + more)}) + "\n"
            for name in (*names, "e")
            for condition, more in (("baseline", 0.0), ("docs", rises.get(name[0], 0.2)))
        ),
    )
    widths = {}
    for keys in ("", ", cluster_key: document"):
        project.write(
            eval_yaml=f"""
                dataset: {{path: q.jsonl{keys}}}
                agents: {{one: {{type: recorded, path: one.jsonl}}}}
                conditions: {{baseline: {{}}, docs: {{}}}}
                metrics: [number/rating]
            """
        )
        run = open_run(project.keval("run", "eval.yaml", "--json").data["run"])
        shown = " ".join(Elements(str(FRAGMENTS["slices"](Report(run, run.summary())))).text.split())
        found = re.search(r"rating \+0\.40 \[([-+]\d\.\d\d), ([-+]\d\.\d\d)\]", shown)
        assert found is not None, shown
        widths[keys] = float(found[2]) - float(found[1])

    assert 2 * widths[""] < widths[", cluster_key: document"]


def test_a_run_without_anything_to_compare_has_a_page(project: Project) -> None:
    project.write(
        eval_yaml="""
            dataset: {path: questions.jsonl}
            agents: {logged: {type: recorded, path: answers.jsonl}}
            metrics: [basic/equals]
        """,
        questions_jsonl='{"id": "q", "question": "How much is 6 × 7?", "answer": "42"}',
        answers_jsonl='{"id": "q", "response": "42"}',
    )
    assert 0 == project.run("eval.yaml").code
    run = open_run(project.run_directory())

    shown = Elements("".join(page(Report(run, run.summary())))).text

    assert "logged with baseline: equals 1.00 (1 question)." in shown
    assert "Nothing is compared in this run" in shown


def test_the_command_writes_the_page_and_says_where_it_is(report: Report, project: Project) -> None:
    run = str(report.run.path)

    written = project.keval("report", run, "--html", "out.html")
    again = project.keval("report", run, "--html", "out.html", "--markdown", "out.md", "--json")
    refused = project.keval("report", run, "--html", "no/such/folder/out.html")

    assert (3, "", True) == (written.code, written.stdout, "wrote out.html" in written.stderr)
    assert Path("out.html").read_text(encoding="utf-8") == "".join(page(report))
    assert ("hostile", True) == (again.data["evaluation"], "wrote out.md" in again.stderr)
    assert (2, True) == (refused.code, "no/such/folder/out.html cannot be written: No such file" in refused.stderr)
