"""A run as Markdown: what it says, how long it is, and that nothing of others has any effect in it."""

from __future__ import annotations

import re

import attrs
import pytest

from keval import open_run
from keval_analysis.findings.effects import Arm, Effect
from keval_analysis.findings.summary import GateResult
from keval_report.markdown import MOST_CHARACTERS, escaped, markdown
from keval_report.report import Report
from tests import hostile
from tests.conftest import Project


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    run = open_run(hostile.run(Project(tmp_path_factory.mktemp("markdown"))))
    return Report(run, run.summary())


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("<b>x</b>", "&lt;b&gt;x&lt;/b&gt;"),
        ("&lt;", "&amp;lt;"),
        ("a | b", r"a \| b"),
        ("`c` *d* _e_ ~f~ [g](h) $i$", r"\`c\` \*d\* \_e\_ \~f\~ \[g\](h) \$i\$"),
        ("a\\|b", r"a\\\|b"),
        ("thanks @somebody", "thanks @&#8203;somebody"),
        ("fixes #12, GH-3", "fixes #&#8203;12, GH&#8203;-3"),
        ("https://example.org www.example.org", "https:&#8203;//example.org www&#8203;.example.org"),
        ("- a", r"\- a"),
        ("1. a", r"1\. a"),
        ("0.5 a", "0.5 a"),
        ("# a", r"\#&#8203; a"),
        ("a\n\n# b\u2028c\x00", "a #&#8203; b c"),
        ("x" * 400, "x" * 300 + " …"),
    ],
)
def test_text_of_others_has_no_effect(text: str, shown: str) -> None:
    assert shown == escaped(text)


def test_a_run_is_sentences_effects_and_what_got_worse(report: Report) -> None:
    agent, condition = report.arms[1]
    scorer = report.summary.scorers[0].scorer
    against = Arm(agent, report.arms[0][1], report.run.id)
    sure = Effect(
        *scorer,
        agent,
        condition,
        against,
        30,
        -0.25,
        0.05,
        run=report.run.id,
        ci_low=-0.35,
        ci_high=-0.15,
        verdict="worse",
    )
    gate = GateResult("length >= 0.8", "failed", 0.7, 0.6, 0.8, "mean", "")

    text = markdown(Report(report.run, attrs.evolve(report.summary, effects=(sure,), gates=(gate,))))

    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert r"| **failed** | length &gt;= 0.8 | 0.70 \[0.60, 0.80\] |" in rows
    effect, again = [line for line in rows if "**worse**" in line]
    assert effect == again  # above, and folded with all others
    assert ["-0.25", "[-0.35, -0.15]", "30", "**worse**"] == [cell.strip() for cell in effect.split("|")[3:7]]
    assert [f"{number} &lt;img src=x onerror=window.injected=true&gt;" for number in range(5)] == sorted(
        line.split(" | ")[0].removeprefix("| ") for line in rows if "equals -1.00" in line
    )


def test_nothing_of_others_is_html_or_a_mention_in_it(report: Report) -> None:
    text = markdown(report)

    assert hostile.LABEL.removeprefix("<").removesuffix(">") in text
    own = re.sub(r"</?details>|</?summary>", "", text)
    assert [] == re.findall(r"<[^>]*>|(?<!\\)`|@(?!&#8203;)", own)
    widths = {line.count(" | ") for line in text.splitlines() if line.startswith("|")}
    assert {2, 5} == widths


def test_it_is_short_enough_for_a_comment_and_says_what_is_left_out(report: Report) -> None:
    (gate,) = [GateResult("x" * 200, "held", 1.0, 1.0, 1.0, "mean", "y" * 200)]

    text = markdown(Report(report.run, attrs.evolve(report.summary, gates=(gate,) * 500)))

    assert 59_000 < len(text) < MOST_CHARACTERS == 60_000
    assert text.endswith("*The rest is left out, because a comment has a maximum length; `keval report` shows all.*\n")
    assert "The rest is left out" not in markdown(report)


def test_the_command_prints_it_alone(report: Report, project: Project) -> None:
    run = str(report.run.path)

    printed = project.keval("report", run, "--markdown")
    dash = project.keval("report", run, "--markdown", "-")

    assert (3, markdown(report)) == (printed.code, printed.stdout)
    assert printed.stdout == dash.stdout
