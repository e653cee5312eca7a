"""Corrections: other arguments after an error or an empty result, out of what the error says and what else fits."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import Any

from keval_gateway import ChatTool
from keval_simulator.arguments import Filled, fill
from keval_simulator.conversation import Conversation
from keval_simulator.found import nearness
from keval_simulator.parameters import bounded, parameters_of
from keval_simulator.results import Outcome, lines_of
from keval_simulator.schema import schema_type
from keval_simulator.words import stems

_OFFERED = re.compile(
    r"\b(?:valid|available|known|allowed|supported|existing|possible|permitted|expected|options?|choices?|names?|try|use)\b"
    r"[^:\n'\"`\[(]{0,40}(?:[:\[(]\s*|(?=['\"`]))(.+)"
    r"|\b(?:there (?:are|is)|one of|choose from|did you mean|must be|should be)\b:?\s*(.+)",
    re.IGNORECASE | re.DOTALL,
)
UNOPENED = re.compile(
    r"\bno (?:\w+ ){0,3}(?:is |are |currently |was )*(?:open|load|connect|activ|select|initiali[sz])"
    r"|\bnot (?:yet |been |currently )*(?:open|load|connect|initiali[sz])"
    r"|\b(?:open|load|connect to) (?:a|an|the|it|one)\b",
    re.IGNORECASE,
)
"""What an error says where something must be opened first."""
_BOUNDS = re.compile(
    r"(?:between|from|range)\s*(-?\d+)\s*(?:and|to|[-–,])\s*(-?\d+)|\b(\d+) to (\d+)\b"
    r"|(?:at most|maximum(?: is| of)?|max|less than or equal to|<=|up to)\s*(-?\d+)"
    r"|(?:at least|minimum(?: is| of)?|min|greater than or equal to|>=)\s*(-?\d+)",
    re.IGNORECASE,
)  # fmt: skip


def offered(error: str) -> list[str]:
    """Return the names that an error offers in place of a wrong one."""
    match = _OFFERED.search(error)
    if match is None:
        return []
    told = match[1] or match[2]
    quoted = re.findall(r"(?<!\w)['\"`]([^'\"`\n]{1,60})['\"`]", told)
    listed = [part.strip(" .?!\n'\"`[](){}") for part in re.split(r",|;|\n|\bor\b|\band\b|\|", told)]
    return [each for each in quoted or listed if each and len(each) <= 60]


def nearest(names: Sequence[str], given: str, conversation: Conversation) -> list[str]:
    """Return the names that are like what was given or have words of the question, the nearest first."""
    asked = stems(conversation.question) | stems(given)

    def near_to(name: str) -> float:
        return SequenceMatcher(None, name.lower(), given.lower()).ratio() + nearness(re.sub("[_-]", " ", name), asked)

    near = sorted((name for name in names if near_to(name) >= 0.6), key=lambda name: -near_to(name))
    return near or (list(names) if len(names) <= 4 else [])


def corrected(tool: ChatTool, failed: Outcome, filled: Filled, conversation: Conversation) -> Iterator[dict[str, Any]]:
    """Yield other arguments after a call without a result: what its error says first, then what else fits."""
    given = dict(failed.call.arguments)
    error = failed.error or ""
    parameters = {each.name: each for each in parameters_of(tool)}
    asked_for = [name for name in parameters if name not in given and re.search(rf"\b{re.escape(name)}\b", error)]
    if asked_for and not (more := fill(tool, conversation, needed=asked_for)).missing:
        yield {**more.arguments, **given, **{name: more.arguments[name] for name in asked_for}}
    handles = [each.name for each in parameters.values() if each.kind == "id" and each.name not in given]
    if UNOPENED.search(error) and handles:
        yield {**fill(tool, conversation, needed=handles, found=handles).arguments, **given}
    offer = _OFFERED.search(error)
    problem = error[: offer.start()] if offer and offer.start() else error
    quoted = [name for name, value in given.items() if str(value) and str(value) in problem]
    order = list(dict.fromkeys([*quoted, *given]))
    for name in order if error else []:
        value = given[name]
        if isinstance(value, int | float) and not isinstance(value, bool) and (bounds := _BOUNDS.search(error)):
            low, high, low2, high2, most, least = (float(each) if each else None for each in bounds.groups())
            limits = {"minimum": low or low2 or least, "maximum": high or high2 or most}
            kind = schema_type(parameters[name].schema) if name in parameters else "number"
            yield {**given, name: bounded(value, {k: v for k, v in limits.items() if v is not None}, kind)}
        if isinstance(value, str):
            if name in parameters and parameters[name].kind == "path":
                yield from ({**given, name: each} for each in _below(value, error, conversation))
            names = [each for each in offered(error) if value not in each and (name in quoted or not quoted)]
            yield from ({**given, name: each} for each in nearest(names, value, conversation)[:2])
    for name in sorted(order, key=lambda name: parameters[name].kind != "query" if name in parameters else True):
        value = given[name]
        if isinstance(value, str) and name in filled.arguments:
            forms = [value.title(), value.lower(), value.upper(), re.sub(r"\W+", "_", value.lower())]
            forms = [*forms, value.rstrip("s")] if parameters[name].kind in ("name", "id", "") else []
            forms = forms if value.lower() in conversation.question.lower() else []
            if "glob" in parameters[name].words or (
                "pattern" in parameters[name].words and "*" in parameters[name].about
            ):
                forms = forms if "*" in value else [f"*{value}*", *forms]
            forms = [each for each in forms if re.search(r"[^\W_]", each)]
            tries = (*forms[: value.islower()], *filled.others.get(name, ())[:4], *forms)
            yield from ({**given, name: each} for each in tries if each not in given.values())


def _below(path: str, error: str, conversation: Conversation) -> Iterator[str]:
    """Yield a file's path below each folder that the error or a result names."""
    texts = (error, *(line for each in conversation.outcomes if each.useful for line in lines_of(each.data)))
    found = [match for text in texts for match in re.findall(r"(?<![\w/])/[\w./ -]*\w", text) if path not in match]
    yield from (f"{each}/{path.lstrip('./')}" for each in dict.fromkeys(found) if not path.startswith(each))
