"""What golden answers are checked by, and what makes two questions nearly the same."""

from __future__ import annotations

from datetime import date

import pytest

from keval_start.generate.checks import KnownQuestions, has_all, names_today, states, unsupported
from keval_start.generate.toolbox import Call, ProposedCall


def call(text: str, **arguments: object) -> Call:
    return Call(1, ProposedCall("read", arguments), text, "", failed=False)


RESULT = call("Tarn 2.0 listens on 127.0.0.1:7443.\nIt serves 1,200 clients\n  at most; see docs/limits.md.", of="Mere")


@pytest.mark.parametrize(
    ("answer", "missing"),
    [
        ("It listens on port 7443.", None),
        ("At most 1200 clients.", None),
        ("At most 1,200.0 clients.", None),
        ("Version 2 of Tarn.", None),
        ("See docs/limits.md in Mere.", None),
        ("Olaf asked for it.", None),
        ("It listens on port 7444.", "7444"),
        ("At most 120 clients.", "120"),
        ("It is what Olaf runs on Kelp.", "Kelp"),
        ("See docs/limit.md.", "docs/limit.md"),
        ("See limits.mdx.", "limits.mdx"),
    ],
)
def test_each_number_and_name_of_an_answer_is_in_results_arguments_or_question(
    answer: str, missing: str | None
) -> None:
    assert missing == unsupported(answer, "What does Olaf need?", [RESULT])


def test_a_passage_is_found_whatever_white_space_it_has() -> None:
    assert states([call("other"), RESULT], "it serves 1,200 clients at most")
    assert not states([RESULT], "it serves 1,200 clients at least")
    assert not states([RESULT], "  ")


def test_what_is_sought_must_stand_in_one_result() -> None:
    assert has_all([call("a"), RESULT], ["tarn", "7443"])
    assert not has_all([call("tarn"), call("7443")], ["tarn", "7443"])


@pytest.mark.parametrize(
    ("answer", "text", "expected"),
    [
        ("It is 2026-11-26.", "x", True),
        ("It was 2026-11-25.", "x", True),
        ("It was 2026-11-01.", "x", False),
        ("It is Thursday.", "2026-11-26, Thursday", True),
        ("It is open on Thursdays.", "Open on Thursdays.", False),
    ],
)
def test_answers_that_hold_today_only_are_known(answer: str, text: str, expected: bool) -> None:
    assert expected == names_today(answer, [call(text)], date(2026, 11, 26))


@pytest.mark.parametrize(
    ("question", "answer", "near"),
    [
        ("What is the port of Tarn?", "7443", True),
        ("what IS the port of tarn", "other", True),
        ("Which port does Tarn have?", "7443", True),
        ("What is the port of Mere?", "8080", False),
        ("Which port does Tarn have by default?", "8080", False),
    ],
)
def test_questions_with_nearly_the_same_words_are_near(question: str, answer: str, near: bool) -> None:
    known = KnownQuestions()
    known.add("What is the port of Tarn?", "7443")

    assert near == known.has_near(question, answer)
