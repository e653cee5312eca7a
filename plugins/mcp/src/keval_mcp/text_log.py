"""Finds the texts of a trial in its model requests: whether the model saw each, when, and by which tool call."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, Literal

import attrs

from keval.plugin import GivenText

_MOST_LINES = 8
_LONGEST_LINE = 200
"""Characters of a line that are looked for, as tools cut long lines off."""
_SAFE = re.compile(r"[A-Za-z0-9 .,;:()_-]+")
"""What every way of writing JSON leaves as it is."""
_UNESCAPED = re.compile(r"[A-Za-z0-9 .,;:()_\-\x80-\ud7ff\ue000-\U0010ffff]+")
"""What is as it is in JSON that has no escape of a code point."""
_CONVERSATIONS = ("messages", "input", "contents")
"""Under which a request has what was said: OpenAI Chat and Anthropic, OpenAI Responses, Gemini."""


@attrs.frozen
class SoughtText:
    """A text that is looked for: in one string of a request, at least half of its longest lines.

    Between lines there may be anything, such as their numbers. `lines` are JSON-escaped in the second place of each
    pair, for tools that return JSON in a text, and `safe` has two pieces of each: one that no escape changes, and one
    that none but that of a code point does. Of a text whose lines other texts have, too, the `name` has to be in the
    string.
    """

    given: GivenText
    lines: tuple[tuple[str, str], ...]
    safe: tuple[tuple[bytes, bytes], ...]
    named: bool = False

    @classmethod
    def of(cls, given: GivenText, body: str, *, shown: str = "", others: Set[str] = frozenset()) -> SoughtText:
        """Prepare a text; `shown` is what the model sees of it in any case, and `others` are lines of other texts."""
        stripped = dict.fromkeys(line.strip() for line in body.splitlines())
        own = [line for line in stripped if line and line not in shown]
        distinct = [line for line in own if line not in others]
        longest = sorted(distinct or own, key=len, reverse=True)[:_MOST_LINES]
        lines = [line[:_LONGEST_LINE] for line in longest]
        safe = ([max(each.findall(line), key=len, default="") for each in (_SAFE, _UNESCAPED)] for line in lines)
        return cls(
            given,
            tuple((line, json.dumps(line)[1:-1]) for line in lines),
            tuple((piece.encode(), unescaped.encode()) for piece, unescaped in safe),
            named=bool(own and not distinct),
        )

    def may_be_in(self, request: bytes) -> bool:
        """Return whether a request has enough of the text to be looked at more closely."""
        # A line in Chinese has hardly anything that is never escaped; most requests escape nothing of it.
        has_escapes = b"\\u" in request
        return self._is_enough((piece if has_escapes else unescaped) in request for piece, unescaped in self.safe)

    def is_in(self, string: str) -> bool:
        """Return whether a string has the text."""
        if self.named and plain_name(self.given) not in string:
            return False
        return self._is_enough(line in string or escaped in string for line, escaped in self.lines)

    def _is_enough(self, found: Iterable[bool]) -> bool:
        return bool(self.lines) and 2 * sum(found) >= len(self.lines)


def plain_name(given: GivenText) -> str:
    """Return the name of a text; of a skill in a plugin, without the plugin's."""
    return given.name.rpartition(":")[2]


@attrs.define
class FollowedTexts:
    """The texts that a context gave in one attempt: `keval.plugin.TextLog`."""

    sought: list[SoughtText] = attrs.field(factory=list)
    _texts: list[GivenText] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._texts = [each.given for each in self.sought]

    def add(self, given: GivenText, body: str) -> None:
        """Follow another text from now on, unless that of this kind and name is followed."""
        if all((each.kind, each.name) != (given.kind, given.name) for each in self._texts):
            self.sought.append(SoughtText.of(given, body))
            self._texts.append(given)

    @classmethod
    def of(cls, texts: Sequence[tuple[GivenText, str, str]]) -> FollowedTexts:
        """Follow texts: each with its body, and with what the model sees of it in any case."""
        times = Counter(line.strip() for _, body, _ in texts for line in {*body.splitlines()})
        shared = {line for line, number in times.items() if number > 1}
        return cls([SoughtText.of(given, body, shown=shown, others=shared) for given, body, shown in texts])

    def saw(self, request: bytes, number: int, at: float | None) -> None:
        """Look for the texts that were not read yet."""
        # A look at the bytes first: most requests have no new text, and are then not parsed.
        open_ones = [
            index for index, each in enumerate(self.sought) if not self._texts[index].read and each.may_be_in(request)
        ]
        if not open_ones:
            return
        try:
            parsed = json.loads(request)
        except (ValueError, RecursionError):  # a request that no endpoint understands has not shown anything
            return
        strings = [*_strings(parsed)]
        for index in open_ones:
            each = self.sought[index]
            if (found := next((said for said in strings if each.is_in(said.text)), None)) is not None:
                by = found.tool_for(each.given)
                self._texts[index] = attrs.evolve(each.given, read=True, model_call=number, by=by, at=at)

    def texts(self) -> tuple[GivenText, ...]:
        """Return the texts, and what became of each."""
        return tuple(self._texts)


_ASKED: Mapping[str, tuple[Literal["resource", "prompt"], str, str]] = {
    "resources/read": ("resource", "uri", "contents"),
    "prompts/get": ("prompt", "name", "messages"),
}
"""Requests for texts: what each gets, what names it, and where the result has it."""


def text_in(method: str, params: Mapping[str, Any], result: Mapping[str, Any]) -> tuple[GivenText, str] | None:
    """Return the longest text in the resource or prompt that a request got, if there is one."""
    if method not in _ASKED:
        return None
    kind, key, where = _ASKED[method]
    blocks = result.get(where)
    blocks = [block for block in blocks if isinstance(block, dict)] if isinstance(blocks, list) else []
    # A message of a prompt has its content by itself.
    contents = [block.get("content", block) for block in blocks]
    texts = [content["text"] for content in contents if isinstance(content, dict) and "text" in content]
    body = max((text for text in texts if isinstance(text, str)), key=len, default="")
    digest = hashlib.sha256(body.encode("utf-8", "surrogatepass")).hexdigest()
    return (GivenText(str(params.get(key)), kind, method, digest), body) if body.strip() else None


@attrs.frozen
class _Call:
    tool: str
    arguments: str


@attrs.frozen
class _Said:
    """A string of a request: the call whose result it is in, the calls of the request, and how many were before it."""

    text: str
    result_of: _Call | None
    calls: Sequence[_Call]
    before: int

    def tool_for(self, given: GivenText) -> str | None:
        """Return the tool that brought a text into the conversation.

        Where no result has it, that is the latest call before it, preferably one that names the skill: Claude Code
        shows a skill in a message after the call of its tool. Instructions are there without a call.
        """
        if self.result_of is not None:
            return self.result_of.tool
        if given.kind == "instructions" or not self.before:
            return None
        before = self.calls[: self.before]
        naming = [call for call in before if plain_name(given) in call.arguments]
        return (naming or before)[-1].tool


def _strings(request: Any) -> Iterator[_Said]:
    """Yield all strings of a request in any of the four protocols, what was said in its order."""
    if not isinstance(request, dict):
        return
    # System prompt and tools come before what was said, so that no call is taken for what brought them.
    for key, value in request.items():
        if key not in _CONVERSATIONS:
            yield from _Walk().through(value)
    for key in _CONVERSATIONS:
        yield from _Walk().through(request.get(key))


@attrs.define
class _Walk:
    calls: list[_Call] = attrs.field(factory=list)
    by_id: dict[str, _Call] = attrs.field(factory=dict)

    def through(self, node: Any, result_of: _Call | None = None) -> Iterator[_Said]:
        if isinstance(node, str):
            yield _Said(node, result_of, self.calls, len(self.calls))
        elif isinstance(node, list):
            for each in node:
                yield from self.through(each, result_of)
        elif isinstance(node, dict):
            self._note_call(node)
            result_of = self._answered(node) or result_of
            for value in node.values():
                yield from self.through(value, result_of)

    def _note_call(self, node: dict[str, Any]) -> None:
        called = node.get("functionCall") or node.get("function_call")  # Gemini
        if isinstance(called, dict):
            self._add(called.get("id"), called.get("name"), called.get("args"))
        elif node.get("type") == "tool_use":  # Anthropic
            self._add(node.get("id"), node.get("name"), node.get("input"))
        elif str(node.get("type")).endswith("_call"):  # OpenAI Responses; some calls have no name, as a shell's
            self._add(node.get("call_id"), node.get("name", node["type"]), node)
        elif isinstance(function := node.get("function"), dict) and "arguments" in function:  # OpenAI Chat
            self._add(node.get("id"), function.get("name"), function["arguments"])

    def _add(self, id: Any, tool: Any, arguments: Any) -> None:
        call = _Call(str(tool), json.dumps(arguments, ensure_ascii=False))
        self.calls.append(call)
        if isinstance(id, str):
            self.by_id[id] = call

    def _answered(self, node: dict[str, Any]) -> _Call | None:
        """Return the call whose result a part of a conversation is, if it is one."""
        response = node.get("functionResponse") or node.get("function_response")
        if isinstance(response, dict):
            # Gemini's calls may have no id.
            named = [call for call in self.calls if call.tool == response.get("name")]
            return self.by_id.get(str(response.get("id"))) or (named[-1] if named else None)
        of = node.get("tool_call_id") or node.get("tool_use_id")
        if of is None and str(node.get("type")).endswith("_output"):
            of = node.get("call_id")
        return self.by_id.get(str(of))
