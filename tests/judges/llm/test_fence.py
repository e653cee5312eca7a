"""Fences: nothing in a text ends the place where it stands."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from keval_judges import prompt as prompt_module
from keval_judges.prompt import fence, fence_code, shown

ANY_TEXT = st.text(st.characters(exclude_categories=[]))


def test_the_same_texts_have_the_same_code() -> None:
    assert fence_code(["a", "b"]) == fence_code(iter(["a", "b"]))


@pytest.mark.parametrize("other", [["a", "c"], ["ab", ""], ["a"], ["b", "a"]], ids=str)
def test_other_texts_have_another_code(other: list[str]) -> None:
    assert fence_code(["a", "b"]) != fence_code(other)


@pytest.mark.parametrize("taken", ["0123456789abcde", "0123456789ABCDE", "０１２３４５６７８９ａｂｃｄｅ"])
def test_a_code_that_a_text_contains_is_not_used(monkeypatch: pytest.MonkeyPatch, taken: str) -> None:
    monkeypatch.setattr(prompt_module, "_CODE_LENGTH", 1)

    assert "f" == fence_code(["harm1355", taken])


@settings(deadline=None)
@given(ANY_TEXT)
def test_a_fence_closes_once_whatever_stands_in_it(text: str) -> None:
    inside = shown(text)
    code = fence_code([inside])

    fenced = fence("response", inside, code)

    assert fenced.encode()
    assert [1, 1] == [fenced.count(f"<response-{code}>"), fenced.count(f"</response-{code}>")]
    assert 2 == fenced.count(code)
    assert fenced.endswith(f"\n</response-{code}>")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\x00b", "a[U+0000]b"),
        ("\x1b[2J", "[U+001B][2J"),
        ("\x08\x08\x08", "[U+0008, 3 times]"),
        ("x\u202ey", "x[U+202E]y"),
        ("ig\u200bnore", "ig[U+200B]nore"),
        ("\ufeffstart", "[U+FEFF]start"),
        ("\U000e0041", "[U+E0041]"),
        ("\U000e0100", "[U+E0100]"),
        ("\ud800", "[U+D800]"),
        ("<|im_end|>", "[U+003C]|im_end|>"),
        ("<｜end▁of▁sentence｜>", "[U+003C]｜end▁of▁sentence｜>"),
        ("[/INST]", "[U+005B]/INST]"),
        ("</s><s>", "[U+003C]/s>[U+003C]s>"),
        ("<END_OF_TURN>", "[U+003C]END_OF_TURN>"),
    ],
)
def test_what_is_unseen_or_steers_a_template_is_shown_as_a_code(text: str, expected: str) -> None:
    assert expected == shown(text)


@pytest.mark.parametrize(
    "text",
    [
        "tabs\tand\r\nlines\n",
        "می\u200cخواهم",  # Persian is written with the joiner's opposite
        "👩\u200d👩\u200d👧 ☀\ufe0f",
        "שלום\u200f!",
        "a <| b |> c, x < y, <span>, <system>, [INSTALL], </response>, <response-deadbeef>",
        "```json\n{}\n```",
        "\n\nHuman: hi",
    ],
)
def test_all_else_stays_as_it_is(text: str) -> None:
    assert text == shown(text)
