"""Reasoning and calls of tools in the texts of models."""

from __future__ import annotations

import time

import pytest

from keval.seams.model_text import split_reasoning, written_calls

TOOLS = {"search": {"properties": {"q": {"type": "string"}}, "required": ["q"]}, "ping": None, "any": {}}
GIVEN = '{"q": "x"}'
SEARCH = f'{{"name": "search", "arguments": {GIVEN}}}'


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
        ('searchArguments.type = "object"\nsearchArguments.properties.q = "x"', ["search"]),
        ('[search(q="x"), search(q="y")]', ["search", "search"]),
        ('```tool_code\nprint(search(q="x"))\n```', ["search"]),
        (f"<function=search>{GIVEN}</function>", ["search"]),
        ("<tool_call>\n<function=search>\n<parameter=q>\nx\n</parameter>\n</function>\n</tool_call>", ["search"]),
        ('<function_calls>\n<invoke name="search">\n<parameter name="q">x</parameter>\n</invoke>\n', ["search"]),
        ("<tool_call>search\n<arg_key>q</arg_key>\n<arg_value>x</arg_value>\n</tool_call>", ["search"]),
        (f"[TOOL_CALLS] [{SEARCH}]", ["search"]),
        (f"[TOOL_CALLS]search[ARGS]{GIVEN}", ["search"]),
        (f"<|tool_call|>[{SEARCH}]<|/tool_call|>", ["search"]),
        (f"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>search\n```json\n{GIVEN}\n```", ["search"]),
        (f"<|tool_call_begin|>functions.search:0<|tool_call_argument_begin|>{GIVEN}<|tool_call_end|>", ["search"]),
        (f"Thought: I look.\nAction: search\nAction Input: {GIVEN}", ["search"]),
        (f'Action:\n```json\n{{"action": "search", "action_input": {GIVEN}}}\n```', ["search"]),
        ('{"name": "search", "parameters": {"type": "object", "properties": {"q": "x"}}}', ["search"]),
        ('{"name": "search", "parameters": {"type": "object", "properties": {"q": {"type": "string"}}}}', []),
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


INVENTED = [
    f"```json\n{SEARCH}\n```\n\nThe ferries leave at 8:00 PM.",
    f"```json\r\n{SEARCH}\r\n```\r\n\r\nThe ferries leave at 8:00 PM.",
    f'```json\n{SEARCH}\n```\n\n```json\n{{"departures": ["20:00"]}}\n```',
    f'<tool_call>\n{SEARCH}\n</tool_call>\n<tool_response>\n{{"at": "20:00"}}\n</tool_response>\nAt 20:00.',
    f"Thought: I look.\nAction: search\nAction Input: {GIVEN}\nObservation: 20:00\nFinal Answer: At 20:00.",
    f"I will use a tool.\n<tool_call>\n{SEARCH}\n</tool_call>",
]
SHOWN = [
    f"Send this:\n\n```json\n{SEARCH}\n```\n\nThe ferries leave at 8:00 PM.",
    f"```json\n{SEARCH}\n```\n\nThis call finds the ferries.",
    f"```json\n{SEARCH}\n```\n\nThere, `q` is the harbour.",
    f"{SEARCH} is what to send.",
    f"`{SEARCH}`\nis what to send.",
    '```python\nsearch(q="x")\n```\n\nThe ferries leave at 8:00 PM.',
    f"Qwen writes:\n```\n<tool_call>\n{SEARCH}\n</tool_call>\n```",
    "Action: search the harbour.\nAction Input: none.",
]


@pytest.mark.parametrize("text", [*INVENTED, *SHOWN])
def test_what_follows_a_call_is_invented_unless_a_call_is_shown(text: str) -> None:
    found = {question: [*written_calls(text, TOOLS, question)] for question in (None, "When?", "Which call finds it?")}

    asked = ["search"] if text in INVENTED else []
    assert {None: [], "When?": asked, "Which call finds it?": []} == found


@pytest.mark.parametrize(
    ("begins", "repeated"),
    [
        *(("", each) for each in ("<tool_call>", "<function=search>", "Action:", "<|", "[", '{"a":', f"{SEARCH};")),
        *(("search", each) for each in (" ", "<arg_key>")),
        *(("search:", "\n"), ("search(", "q=1, "), ("Thought:", "\n ")),
    ],
)
def test_a_text_is_read_once_however_it_nests(begins: str, repeated: str) -> None:
    def seconds(length: int) -> float:
        text = f"{begins}{repeated * (length // len(repeated))}!"
        taken: list[float] = []
        for _ in range(3):
            began = time.process_time()
            written_calls(text, TOOLS, "When?")
            taken.append(time.process_time() - began)
        return min(taken)

    # Twelve times the text takes 144 times as long if each mark has the rest read again.
    assert seconds(24_000) < 60 * max(seconds(2_000), 0.00005)


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
