"""The verdict: how a response compares with a golden answer in facts, coverage and form, measured by rules.

The thresholds follow the level descriptions of k-eval.md, Metrics, with a level for each fifth of the measure.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from random import Random
from typing import Any, Literal, TypeAlias

import attrs

from keval_simulator.judge.comparison import Contradiction, agrees, contradictions, short
from keval_simulator.judge.facts import Text, share
from keval_simulator.judge.prompt import Sections
from keval_simulator.schema import Schema, Suggest, schema_type
from keval_simulator.words import sentences, split_identifier

Aspect: TypeAlias = Literal["factual", "complete", "clear"]

WOBBLE = 0.03
"""How far seed and repetition move a measure at most, on 0..1: only borderline values change their level."""
_FACTS = 0.7
"""The share of facts in coverage, beside the golden answer's other words."""
_STRICT = 1.5
"""The exponent that makes half of the facts less than half of the coverage, as what is critical is missing."""
_FEW_WORDS = 3
"""Fewer words than so many count for less than their share."""
_ENOUGH_WORDS = 0.75
"""The share of words that counts as all of them, as nobody says a thing in the same words."""
_MOST_CLAIMS = 8
FILLER = re.compile(
    r"\b(?:great question|good question|i'?d be happy to|happy to help|sure,|certainly|of course[,!]|as an ai|"
    r"here is what i found|based on what i looked up|i hope (?:this|that) helps|let me know if|feel free to|"
    r"don't hesitate|it is important to note|it'?s worth noting|in conclusion|i suggest checking the source)",
    re.IGNORECASE,
)
_STRUCTURE = re.compile(r"^\s*(?:[-*•]\s|\d+[.)]\s|#+\s|```|\|)", re.MULTILINE)
_CODE = re.compile(r"`[^`]+`|```")
_PLENTY = 25
"""Words that any answer may have, however short the golden one is."""
_ANSWERS = 0.4
"""The share of a golden answer's words from which on a sentence answers."""


@attrs.frozen
class Verdict:
    """What a judge measured, on 0..1, with a reason for each, and what it could not verify."""

    factual: float
    complete: float
    clear: float
    reasons: Mapping[Aspect, str]
    unverified: tuple[str, ...] = ()

    @property
    def overall(self) -> float:
        """The mean of the three."""
        return (self.factual + self.complete + self.clear) / 3

    @property
    def reason(self) -> str:
        """The reason for `overall`, which is also what a rubric gets that no rule measures."""
        told = (self.reasons[aspect].removeprefix(_MARK) for aspect in ("complete", "factual", "clear"))
        said = " ".join(dict.fromkeys(f"{each[:1].upper()}{each[1:]}" for each in told))
        return f"{_MARK}the mean of coverage, facts and form. {said}"


_MARK = "Simulated judge: "


def judge(sections: Sections, rng: Random) -> Verdict:
    """Compare a response with the golden answer: coverage of its facts, contradictions, form.

    `rng` is drawn from for the wobble only, so that it must not depend on what is judged.
    """
    wobble = [rng.uniform(-WOBBLE, WOBBLE) for _ in range(3)]
    said = _without_echo(sections)
    if not re.search(r"\w", said):
        empty = f"{_MARK}the response is empty."
        return Verdict(0.0, 0.0, 0.0, {"factual": empty, "complete": empty, "clear": empty})
    golden, response, question = map(Text.read, (sections.golden, said, sections.question))
    wrong = contradictions(golden, response, question) if sections.golden else []
    wanted = {fact.said: response.has(fact) for fact in golden.facts if not question.has(fact)}
    if golden.unknown:
        wanted["it is not known"] = response.unknown
    if golden.lead:
        wanted[golden.lead] = agrees(golden, response)
    wanted |= {each.golden: False for each in wrong if each.denial}
    words = golden.other_words - (question.words if wanted else frozenset())
    covered = share(words, response.words)
    evasive = response.unknown and not golden.unknown and not any(wanted.values()) and covered < 0.5
    complete = 0.0 if evasive else _coverage(wanted, words, covered) if sections.golden else 0.5
    # What is missing costs a little, what is contradicted much.
    factual = min(
        0.25 if evasive else 0.2 + 0.8 * complete,
        *(0.5 if each.also else 0.0 if each.harmful else 0.25 for each in wrong),
        1.0,
    )
    clear, remarks = _clarity(said, golden, response, question)
    if sections.golden and complete < 0.4:
        # A form cannot be better than what there is to be found in it.
        clear = min(clear, 0.3 if complete < 0.2 else 0.6)
        remarks.insert(0, "it does not answer" if evasive else "little of the answer is in it")
    factual, complete, clear = (
        min(max(each + by, 0.0), 1.0) for each, by in zip((factual, complete, clear), wobble, strict=True)
    )
    told: dict[Aspect, str] = {
        "factual": _factual_reason(wrong, little=bool(sections.golden) and complete < 0.6),
        "complete": f"{sum(wanted.values())} of {len(wanted)} facts of the golden answer are in the response"
        if wanted
        else f"{covered:.0%} of the golden answer's words are in the response"
        if sections.golden
        else "there is no golden answer to hold the response against",
        "clear": "; ".join(remarks) or "the answer is easy to find and to read",
    }
    if missing := [fact for fact, there in wanted.items() if not there]:
        told["complete"] += f"; missing: {_listed(missing)}"
    if evasive:
        told["complete"] += "; it declines to answer"
    unverified = _unverified(
        response, (golden, question, Text.read(sections.earlier)), {each.response for each in wrong}
    )
    reasons: dict[Aspect, str] = {aspect: f"{_MARK}{reason}." for aspect, reason in told.items()}
    return Verdict(factual, complete, clear, reasons, unverified)


def _without_echo(sections: Sections) -> str:
    """Take the question out of the response: to repeat it is no answer."""
    asked = sections.question.strip().rstrip("?.! ")
    response = sections.response or ""
    return re.sub(re.escape(asked), "it", response, flags=re.IGNORECASE) if len(asked.split()) > 3 else response


def _coverage(wanted: Mapping[str, bool], words: Collection[str], covered: float) -> float:
    """Weigh which facts are there and the share of the other words that is covered; few words weigh less."""
    hard, soft = _FACTS * bool(wanted), (1 - _FACTS) * min(len(words) / _FEW_WORDS, 1.0)
    had = hard * (sum(wanted.values()) / max(len(wanted), 1)) ** _STRICT + soft * min(covered / _ENOUGH_WORDS, 1.0)
    return had / (hard + soft) if hard + soft else 1.0


def _clarity(said: str, golden: Text, response: Text, question: Text) -> tuple[float, list[str]]:
    """Measure length against need, structure, filler, repetition, code marked as such, and an early answer.

    Return the measure on 0..1 and what lowered it, most grave first.
    """
    words, need = len(said.split()), max(len(golden.plain.split()), _PLENTY)
    structured = bool(_STRUCTURE.search(said)) or said.count("\n\n") >= words / 100
    parts = [part.lower() for part in sentences(said)]
    telling = golden.other_words - question.words
    answering = (
        any(golden.has(fact) and not question.has(fact) for fact in each.facts)
        or share(telling, each.words) >= _ANSWERS
        for each in response.sentences
    )
    bare_code = any(fact.kind == "flag" for fact in response.facts) and not _CODE.search(said)
    lost = {
        "it is a wall of text": 0.5 if words > 250 and not structured else 0.0,
        "a long text has no structure": 0.25 if 110 < words <= 250 and not structured else 0.0,
        "it is many times as long as it needs to be": 0.45 if words > 12 * need else 0.0,
        "it is much longer than it needs to be": 0.2 if 5 * need < words <= 12 * need else 0.0,
        "the answer comes late": 0.2 if next((at for at, each in enumerate(answering) if each), 0) >= 3 else 0.0,
        "it repeats itself": 0.2 if len(set(parts)) < len(parts) else 0.0,
        "commands are not marked as code": 0.15 if bare_code else 0.0,
        "it has filler": min(0.14 * len(FILLER.findall(said.replace("’", "'"))), 0.4),
    }
    remarks = sorted((remark for remark, loss in lost.items() if loss), key=lambda remark: -lost[remark])
    return max(1 - sum(lost.values()), 0.0), remarks


def _factual_reason(wrong: Sequence[Contradiction], *, little: bool) -> str:
    if wrong:
        told = (f"“{each.response}” where it has “{each.golden}”" for each in wrong[:3])
        return f"the response contradicts the golden answer: {'; '.join(told)}"
    return "nothing in the response contradicts the golden answer" + ", but much of that is not there" * little


def _listed(facts: Sequence[str]) -> str:
    shown = ", ".join(f"“{fact}”" for fact in facts[:4])
    return f"{shown} and {len(facts) - 4} more" if len(facts) > 4 else shown


def _unverified(response: Text, given: Sequence[Text], wrong: Collection[str]) -> tuple[str, ...]:
    """Describe what each sentence adds that is in no given text, and stands in the place of nothing golden."""
    added = []
    for each in response.sentences:
        new = [fact.said for fact in each.facts if fact.said not in wrong and not any(text.has(fact) for text in given)]
        if new and re.search(r"[^\W\d_]", each.text):  # the number of an item states nothing
            is_are = "is" if len(new) == 1 else "are"
            told = f"{', '.join(new)} {is_are} in neither the golden answer nor the question."
            added.append(f"“{short(each.text)}”: {told}")
    return tuple(added[:_MOST_CLAIMS])


_ASPECTS: dict[Aspect, tuple[str, ...]] = {
    "factual": ("fact", "accura", "correct", "adher", "safe", "truth", "faithful", "ground", "hallucin"),
    "complete": ("complet", "coverage", "recall", "thorough", "suffic"),
    "clear": ("help", "clar", "clear", "concise", "format", "style", "read", "fluen", "structur"),
}
_CLAIM_WORDS = ("unverified", "claim", "unsupported", "hallucination")
_REASON_WORDS = ("reason", "explan", "rationale", "justif", "comment", "feedback", "why", "summary")
_POSITIVE = ("pass", "yes", "correct", "good", "true", "accept", "excellent")
_NEGATIVE = ("fail", "no", "incorrect", "bad", "false", "reject", "poor")
_PASSES = 0.6


def suggestions(verdict: Verdict) -> Suggest:
    """Return the wishes for a structured verdict: scores by what they are called, reasons, unverified claims."""

    def suggest(path: tuple[str, ...], schema: Schema) -> Any:
        name = " ".join(split_identifier(path[-1])) if path else ""
        around = " ".join(" ".join(split_identifier(part)) for part in path) + f" {schema.get('title', '')}".lower()
        kind = schema_type(schema)
        if kind == "array":
            return verdict.unverified if any(word in name for word in _CLAIM_WORDS) else None
        aspect = _aspect(around, str(schema.get("description", "")).lower())
        value = getattr(verdict, aspect) if aspect else verdict.overall
        if options := schema.get("enum"):
            return _level(options, value)
        if kind == "boolean":
            return value >= _PASSES
        if kind in ("integer", "number"):
            low, high = schema.get("minimum", 1), schema.get("maximum", 5)
            return low + value * (high - low) if kind == "number" else round(low + value * (high - low))
        if kind == "string" and (not name or any(word in name for word in _REASON_WORDS)):
            return verdict.reasons[aspect] if aspect else verdict.reason
        return None

    return suggest


def _aspect(name: str, description: str) -> Aspect | None:
    for text in (name, description):
        for aspect, marks in _ASPECTS.items():
            if any(mark in text for mark in marks):
                return aspect
    return None


def _level(options: list[Any], value: float) -> Any:
    """Choose from an enum: by rank among numbers, by meaning among words."""
    if all(isinstance(option, int | float) and not isinstance(option, bool) for option in options):
        ranked = sorted(options)
        return ranked[round(value * (len(ranked) - 1))]
    wanted = _POSITIVE if value >= _PASSES else _NEGATIVE
    return next((o for o in options if isinstance(o, str) and o.lower().startswith(wanted)), None)
