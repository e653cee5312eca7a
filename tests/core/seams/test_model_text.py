"""Reasoning and calls of tools in the texts of models."""

from __future__ import annotations

import pytest

from keval.seams.model_text import split_reasoning, written_calls

TOOLS = {"search": {"properties": {"q": {"type": "string"}}, "required": ["q"]}, "ping": None, "any": {}}
SEARCH = '{"name": "search", "arguments": {"q": "x"}}'


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        (SEARCH, ["search"]),
        (f"```\n{SEARCH}\n```", ["search"]),
        (f"`{SEARCH}`", ["search"]),
        (f"<tool_call>{SEARCH}</tool_call>\n<tool_call>{SEARCH}</tool_call>", ["search", "search"]),
        (f"<tool_call>\n```json\n{SEARCH}\n```\n</tool_call>", ["search"]),
        (f"<tool_call>\n{SEARCH}", ["search"]),
        (f'{SEARCH}; {{"name": "ping", "parameters": {{}}}}', ["search", "ping"]),
        (f"<|python_tag|>{SEARCH}", ["search"]),
        ('{"tool_calls": [{"function": {"name": "any", "arguments": {"whatever": 1}}}]}', ["any"]),
        ('search(q="x")', ["search"]),
        ("```python\n[search(q = 'x y')]\n```", ["search"]),
        ("ping()", ["ping"]),
        ('searchArguments:\n\nq: "x"', ["search"]),
        ("search:\n  q: 5", ["search"]),
        ('search("x")', []),
        ('search(q="x", r=1)', []),
        ("search:\n12:30", []),
        ("search: q=5", []),
        ('search(q="x") finds it', []),
        (f"search({'a.' * 40_000}", []),
        (f"search({'a=1, ' * 19_000}", []),
        ('{"name": "search", "arguments": {}}', []),
        ('{"name": "search", "arguments": {"q": "x", "r": 1}}', []),
        ('{"name": "search", "arguments": "no JSON"}', []),
        ('{"name": "search"}', []),
        ('{"name": "find", "arguments": {"q": "x"}}', []),
        (f"{SEARCH} Done.", []),
        (f"Done. {SEARCH}", []),
        ("", []),
        ("[]", []),
        ("```\n\n```", []),
        ("[" * 50_000, []),
        ("<tool_call>" * 5_000, []),
    ],
)
def test_a_text_is_calls_only_as_a_whole(text: str, calls: list[str]) -> None:
    assert calls == [*written_calls(text, TOOLS)]


@pytest.mark.parametrize(
    ("text", "reasoning", "answer"),
    [
        ("<think>a</think>b", "a", "b"),
        ("\n<THINK>\na\n</think>\n\nb\n", "a", "b\n"),
        ("<think>a</think><thinking>b</thinking>c", "a\n\nb", "c"),
        ("a\n</think>\nb", "a", "b"),
        ("<think>a", "a", ""),
        ("b", "", "b"),
        ("Use '</think>' there.", "", "Use '</think>' there."),
        ("First <think>a</think>", "", "First <think>a</think>"),
        ("<p>b</p>", "", "<p>b</p>"),
    ],
)
def test_reasoning_is_what_a_text_begins_with(text: str, reasoning: str, answer: str) -> None:
    assert (reasoning, answer) == split_reasoning(text)
