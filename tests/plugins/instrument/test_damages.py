import calendar
import json
import re
from itertools import islice
from pathlib import Path
from random import Random

import pytest
from hypothesis import example, given, settings, strategies as st

from keval import Sample
from keval_instrument import number_damage
from keval_instrument.answer_parts import statements
from keval_instrument.check_folder import WrittenAnswer
from keval_instrument.damages import CONDITIONS, GOLDEN, written_answers
from keval_instrument.name_damage import Known, Vocabulary, damaged
from keval_instrument.negation import negated
from keval_instrument.rewording import keeps_facts

EXAMPLES = Path(__file__).parents[3] / "examples"
FILES = ("weather/questions", "weather/conversations", "context-ab/questions", "kuberay/questions")
OTHERS = (
    ("The answer", "42"),
    ("Is it on?", "Yes"),
    ("As JSON?", '{"port": 7443, "host": "a.example", "tls": true}'),
    ("As code?", "```python\nfor turn in range(10):\n    print(turn)\n```"),
    (
        "Wo?",
        "Der Dienst läuft in Frankfurt auf Port 7443. Die Daten bleiben 30 Tage lang dort, und zwar verschlüsselt.",
    ),
    ("Table?", "| City | °C |\n|---|---|\n| Oslo | 3 |\n| Rome | 14 |\n| Lima | 19 |"),
    (
        "Steps?",
        "1. Run `tarn up`.\n2. Wait 30 seconds.\n3. Open https://tarn.example:7443/status.\n4. Sign in as Ada Byron.",
    ),
    ("端口？", "服务监听7443端口。数据保留30天。"),
)


def examples() -> list[Sample]:
    lines = [line for file in FILES for line in (EXAMPLES / f"{file}.jsonl").read_text(encoding="utf-8").splitlines()]
    records = map(json.loads, lines)
    found = [
        Sample(
            record["id"],
            record.get("question") or record["turns"][0],
            record["answer"],
            turns=tuple(record.get("turns", ())[1:]),
        )
        for record in records
    ]
    return [*found, *(Sample(f"other-{place}", *each) for place, each in enumerate(OTHERS))]


SAMPLES = examples()
VOCABULARY = Vocabulary.of(SAMPLES)


def faults(samples: list[Sample], answers: list[WrittenAnswer], vocabulary: Vocabulary) -> list[str]:
    """What is wrong with written answers, whatever they are made of."""
    goldens = {sample.id: sample.answer or "" for sample in samples}
    found = []
    for each in answers:
        golden, kind = goldens[each.sample], each.condition.partition("-")[0]
        changes = [change.split(" → ") for change in each.note.split("; ") if " → " in change]
        claims = {
            "it is the golden answer": each.text.strip() == golden.strip() and each.condition != GOLDEN,
            "it is empty": not each.text.strip() and kind != "empty",
            "its note tells what was not there": kind in ("number", "name")
            and any(said not in golden for said, _ in changes),
            "its note tells what is not there": kind in ("number", "name")
            and any(new not in each.text for _, new in changes),
            "a new number was there before": kind == "number"
            and any(new in re.findall(r"\d+(?:[.,:]\d+)*", golden) for _, new in changes),
            "what was left out is there": kind == "left_out" and len(each.text) >= len(golden),
            "the golden answer is not kept": kind == "added" and golden.strip().rstrip(".") not in each.text,
            "it is not padded to twice the length": kind == "padded"
            and (golden.strip() not in each.text or len(each.text) < 2 * len(golden.strip())),
            "facts are lost": kind in ("padded", "reworded") and not keeps_facts(golden, each.text, vocabulary),
        }
        found += [f"{each.sample} {each.condition}: {claim}: {each.text!r}" for claim, holds in claims.items() if holds]
    return found


def test_every_answer_made_of_real_golden_answers_is_what_it_is_said_to_be() -> None:
    answers = [*written_answers(SAMPLES, seed=1)]

    assert faults(SAMPLES, answers, VOCABULARY) == []
    assert answers[:200] == [*islice(written_answers(SAMPLES, seed=1), 200)]
    made = {(each.sample, each.condition): each.text for each in answers}
    assert len(made) == len(answers)
    assert {condition for _, condition in made} == {GOLDEN, *CONDITIONS}
    otherwise = [*islice(written_answers(SAMPLES, seed=2), 200)]
    assert sum(made.get((each.sample, each.condition)) != each.text for each in otherwise) > 50
    assert faults(SAMPLES, otherwise, VOCABULARY) == []


PIECES = """
It is not 7,443.50 €. On 3 March at 09:30 `tarn up --port 7443` Oslo Rome **v2.1.3** 10–15 % -4 °C - one hour, and more
than 12 files; | a | 5 | {"a": 1} Yes, No, can cannot never https://a.b/c 1. ```
"""


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.text(max_size=60),
            st.lists(st.sampled_from(re.split("( |\n)", PIECES)), max_size=28).map("".join),
        ),
        max_size=4,
    )
)
@example([">"])  # a marker with nothing after it
def test_whatever_a_golden_answer_is_nothing_wrong_is_made_of_it(texts: list[str]) -> None:
    samples = [Sample(f"s{place}", f"Question {place}?", text) for place, text in enumerate(texts)]

    answers = [*written_answers(samples, seed=0)]

    assert faults(samples, answers, Vocabulary.of(samples)) == []


def changed(text: str, *, every: bool = False) -> set[str]:
    """All that becomes of the numbers of a text."""
    made = (number_damage.damaged(text, "", Random(seed), every=every) for seed in range(60))
    return {each[0] for each in made if each is not None}


@pytest.mark.parametrize(
    "said",
    [
        ["Die Wartung beginnt am 12. März um 22 Uhr.", "Dann ist der Dienst aus."],
        ["Der 2. Server, d. h. der neue, bleibt bis 1. Mai.", "Das kostet ca. 5 Euro, z. B. im Juli."],
        ["It costs 5.", "Then run npm i.", "See e.g. Fig. 3."],
    ],
)
def test_a_stop_after_an_ordinal_or_an_abbreviation_ends_no_statement(said: list[str]) -> None:
    text = " ".join(said)

    assert said == [part.of(text) for part in statements(text)]


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("It costs 1,234.56 dollars.", r"It costs [1-9],\d{3}\.\d{2} dollars\."),
        ("Es sind 12 345 Leute.", r"Es sind [1-9]\d \d{3} Leute\."),
        ("Es sind 3,5 Prozent.", r"Es sind \d,\d Prozent\."),
        ("The share is 80 %.", r"The share is (?:[1-9]\d?|100) %\."),
        ("It is -2.8 °C.", r"It is -(?:[6-9]|1\d)\.8 °C\."),
        ("On 28 February it began.", r"On (?:[2-9]|1\d|2[0-5]) February it began\."),
        ("It was found in 1987.", r"It was found in (?:19[789]\d)\."),
        ("It is from 2026-01-15.", r"It is from 2026-01-(?:0[1-9]|1\d|2[0-8])\."),
        ("At 09:30 it opens.", r"At (?:0[1-7]|1[12]):30 it opens\."),
        ("Release 3.11.2 is current.", r"Release 3\.11\.[0456] is current\."),
        (
            "It is valid for one hour.",
            r"It is valid for (?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve) hours\.",
        ),
        ("It takes 1 minute.", r"It takes \d+ minutes\."),
        ("It takes 1 hour, or 1 step.", r"It takes (\d+) hours, or \1 steps\."),
        ("It exits with code 0.", r"It exits with code [2-9]\."),
        ("At least 12 characters.", r"At least (?:1[5-9]|2\d) characters\."),
        ("Up to 8 files.", r"Up to [2-6] files\."),
        ("1. Run it.\n2. Wait 30 seconds.", r"1\. Run it\.\n2\. Wait (?!30)\d+ seconds\."),
        ('{"port":7443}', r'\{"port":(?!7443)\d+\}'),
    ],
)
def test_a_number_becomes_another_of_its_form(text: str, form: str) -> None:
    made = changed(text)

    assert len(made) > 1
    assert [each for each in made if not re.fullmatch(form, each) or each == text] == []


@pytest.mark.parametrize(
    "text",
    [
        "It uses SHA-256 and XChaCha20-Poly1305.",
        "See https://a.example/v2/7443/page.",
        "1. Run it.\n2. Wait.",
        "Take a size such as 5 MB.",
        "It is open 24/7.",
        "The last one of the others.",
        "Files larger than 2 TiB are refused.",
    ],
)
def test_a_number_that_states_nothing_or_has_no_wrong_one_beside_it_stays(text: str) -> None:
    assert changed(text) == set()


def test_both_ends_of_a_range_keep_their_order_and_every_place_of_a_number_is_changed() -> None:
    for text in changed("Between 4 and 9 files, or 4 folders.", every=True):
        low, high, again = map(int, re.findall(r"\d+", text))

        assert low < high
        assert again == low


@pytest.mark.parametrize(
    ("text", "opposite"),
    [
        ("No, existing files are not overwritten. They stay.", "Yes, existing files are overwritten. They stay."),
        ("Yes, under Account.", "No, under Account."),
        ("It listens on port 7411.", "It does not listen on port 7411."),
        ("The documentation doesn't say it.", "The documentation does say it."),
        ("It cannot be recovered.", "It can be recovered."),
        ("There is no way to recover it.", "There is some way to recover it."),
        ("Files larger than 2 TiB fail.", "Files smaller than 2 TiB fail."),
        ("Use `tarn up`.", "Do not use `tarn up`."),
        ("Logging was switched off.", "Logging was switched on."),
        ("Is it so? It is on.", "Is it so? It is not on."),
        ("The rules keep 7 files.", "The rules do not keep 7 files."),
        ("true", "false"),
    ],
)
def test_a_claim_becomes_its_opposite(text: str, opposite: str) -> None:
    made = negated(text, Random(0))

    assert made is not None
    assert made[0] == opposite


@pytest.mark.parametrize(
    "text",
    [
        "Which city do you mean?",
        "Under Account, Billing.",
        "Das ist der Hafen, und er ist nicht offen.",
        "`is not`",
        "30 °C",
        "It may snow.",
    ],
)
def test_what_claims_nothing_or_is_not_english_is_not_negated(text: str) -> None:
    assert negated(text, Random(0)) is None


def test_a_name_is_replaced_wherever_it_stands_by_one_of_its_class_that_the_question_does_not_have() -> None:
    samples = [
        Sample("a", "Where is Ada Byron?", "In Oslo. Oslo is where Ada Byron lives; see `--home` in March."),
        Sample("b", "Where?", "She lives in Rome with Max Born; see `--away`, or ask in Lima."),
    ]
    known = Known(samples[0].question, Vocabulary.of(samples))

    made = {
        text
        for seed in range(200)
        for text, _ in [damaged(samples[0].answer or "", known, Random(seed), every=False) or ("", [])]
    }

    unchanged = "In Oslo. Oslo is where Ada Byron lives; see `--home` in March."
    cities = {unchanged.replace("Oslo", city) for city in ("Rome", "Lima")}
    months = {unchanged.replace("March", month) for month in calendar.month_name[1:] if month not in ("March", "April")}
    assert made == {*cities, *months, unchanged.replace("home", "away")}


def test_a_golden_answer_that_allows_no_damage_gets_none() -> None:
    made = {each.condition for each in written_answers([Sample("a", "Which?", "Blue")], seed=0)}

    assert made == {GOLDEN, "empty", "padded", "reworded"}


def test_an_answer_to_the_same_question_or_nearly_the_same_answer_is_no_other_answer() -> None:
    samples = [
        Sample("a", "Which port?", "It listens on port 7443."),
        Sample("b", "Which port?", "Port 7443, as in the configuration of the service."),
        Sample("c", "What does it do?", "It listens on port 7443 by default."),
    ]

    assert [each for each in written_answers(samples, seed=0) if each.condition == "other" and each.sample == "a"] == []
