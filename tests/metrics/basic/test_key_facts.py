"""Key facts: which parts of a golden answer are looked for, and what counts as the same."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings, strategies as st

from keval import Sample, Score, Trial
from keval_metrics_basic.key_facts import KeyFacts
from tests.metrics.basic.conftest import make_trial


def scored(said: str, answer: str, question: str = "How?") -> Score:
    trial = make_trial(said)
    return KeyFacts().score(Trial("t1", Sample("s1", question, answer), "agent", "condition", 1, trial.transcript))


@pytest.mark.parametrize(
    ("answer", "facts"),
    [
        ("Keep 7 daily, 4 weekly.", "7|4"),
        ("For 72 hours, with `molehill undo`.", "72 hours|molehill undo"),
        ("Run `molehill fetch latest --to FOLDER --only <path>`.", "molehill fetch latest|--to|--only"),
        ("Run:\n```sh\n$ molehill dig /mnt/usb\n```", "molehill dig|/mnt/usb"),
        ("Call `sum(a, b)` of `parallel_uploads`.", "sum(a, b)|parallel_uploads"),
        ("It is ~/.config/app.toml or --config, see https://a.org/b?c=d.", "~/.config/app.toml|--config|https://a.org/b?c=d"),
        ("They met Marie Curie. She left Łódź at 07:15 on 2026-11-22.", "Marie|Curie|Łódź|07:15|2026-11-22"),
        ("1. BLAKE3 hashes\n2. macOS, v1.2, molehill.toml", "BLAKE3|macOS|v1.2|molehill.toml"),
        ("It costs 1,234,567 crowns, i.e. 3.5 % more and/or -5 °C.", "1234567|3.5 %|-5 °C"),
        ("最多12个字符，使用FUSE 3。", "12|FUSE|3"),
        ("The page does not say so.", "the|page|does|not|say|so"),
        ("不知道", "不|知|道"),
    ],
)  # fmt: skip
def test_what_is_looked_for(answer: str, facts: str) -> None:
    score = scored("", answer)

    assert (0.0, facts) == (score.value, "|".join(score.details["missing"]))


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("48h, or **2TiB**", "48 hours and 2 TiB"),
        ("30%, 5°C, a 15-minute pause", "30 percent, 5 °C, 15 minutes"),
        ("at 7:15 for 1 234 567 or 1’000", "At 07:15 for 1,234,567 or 1,000"),
        ("run MOLEHILL  Undo `--force`", "`molehill undo --force`"),
        ("It is Oslo, in Norway", "Oslo"),
    ],
)
def test_what_is_the_same(said: str, answer: str) -> None:
    assert 1.0 == scored(said, answer).value


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("72 minutes", "72 hours"),
        ("1. Open it\n2) Close it", "1, then 2"),
        ("2.5 or -2 or 12", "At 2"),
        ("`molehill undoing` with --to-all", "`molehill undo`, `--to`"),
    ],
)
def test_what_is_not_the_same(said: str, answer: str) -> None:
    assert 0.0 == scored(said, answer).value


def test_what_the_question_says_does_not_count() -> None:
    score = scored(
        "Port 8080 of `tarn serve`.", "`tarn serve` listens on port 7070.", "Where does `tarn serve` listen?"
    )

    assert (0.0, "0 of 1 facts; missing: '7070'") == (score.value, score.reason)
    assert 1.0 == scored("No, never.", "No, never S3.", "Does it know S3?").value


def test_of_several_golden_answers_the_nearest_counts() -> None:
    trial = make_trial("In 1905 it was Kristiania", facts={"x": ["Oslo has 9 parks", "It had 3, in 1905"]})

    score = KeyFacts("facts.x").score(trial)

    assert (0.5, "1 of 2 facts; missing: '3'") == (score.value, score.reason)
    assert {"found": ["1905"], "missing": ["3"]} == score.details


def test_nothing_to_compare_with_is_unscored() -> None:
    for answer in (None, "?!"):
        score = KeyFacts().score(make_trial("7", answer))

        assert (None, "nothing to compare with") == (score.value, score.reason[:23])


_PIECES = [
    *["7", "%", "-", "`", "*", ".", ",", "(", "天", "é", "́", "ß", "'", "_", "\x00", "\n", "\xa0"],
    " ",
    " ",
    "48",
    "hours",
    "h",
    "1,234",
    "000",
    "07:15",
]
_PIECES += ["--to", "1. ", "Oslo", "is", "/mnt/a", "a.toml", "2.5", "```", "FUSE"]
_TEXTS = st.lists(st.sampled_from(_PIECES) | st.text(max_size=3), max_size=12).map("".join)


@given(_TEXTS, _TEXTS, _TEXTS)
@example("7`7\x0077`", "", "")
@settings(max_examples=200, deadline=None)
def test_a_golden_answer_has_its_facts_and_more_text_never_less(golden: str, said: str, more: str) -> None:
    whole = scored(golden, golden).value
    first, second, both = (scored(each, golden).value for each in (said, more, f"{said}\n{more}"))

    assert whole in (1.0, None)
    assert whole is None or max(first or 0.0, second or 0.0) <= (both or 0.0)
    assert scored("", golden).value in (0.0, None)
