"""The verdict: how a response compares with a golden answer in facts, coverage and form, measured by rules.

The thresholds follow the level descriptions of k-eval.md, Metrics, with a level for each fifth of the measure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, Literal, TypeAlias

import attrs

from keval_simulator.judge.comparison import Contradiction, Text, added, agrees, contradictions, covers
from keval_simulator.judge.facts import Fact, Statement
from keval_simulator.judge.prompt import Sections
from keval_simulator.schema import Schema, Suggest, schema_type
from keval_simulator.words import sentences, shares_stem, split_identifier

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


@attrs.frozen
class Clarity:
    """A measure on 0..1 with what lowered it, most grave first."""

    value: float
    remarks: tuple[str, ...]


def clarity(response: str, golden: str, said: tuple[Statement, ...], answering: list[bool]) -> Clarity:
    """Measure length against need, structure, filler, repetition, code marked as such, and an early answer.

    `said` are the response's statements and `answering` says of each whether it has a fact of the golden answer.
    """
    words, need = len(response.split()), max(len(golden.split()), _PLENTY)
    structured = bool(_STRUCTURE.search(response)) or response.count("\n\n") >= words / 100
    parts = [part.lower() for part in sentences(response)]
    filler = len(FILLER.findall(response.replace("’", "'")))
    late = next((at for at, answers in enumerate(answering) if answers), 0)
    bare_code = any(fact.kind in ("flag", "command") for each in said for fact in each.facts)
    lost = {
        "it is a wall of text": 0.5 if words > 250 and not structured else 0.0,
        "a long text has no structure": 0.25 if 110 < words <= 250 and not structured else 0.0,
        "it is many times as long as it needs to be": 0.45 if words > 12 * need else 0.0,
        "it is much longer than it needs to be": 0.2 if 5 * need < words <= 12 * need else 0.0,
        "the answer comes late": 0.2 if late >= 3 else 0.0,
        "it repeats itself": 0.2 if len(set(parts)) < len(parts) else 0.0,
        "its sentences are long": 0.15 if words > 35 * max(len(parts), 1) else 0.0,
        "commands are not marked as code": 0.15 if bare_code and not _CODE.search(response) else 0.0,
        "it has filler": min(0.14 * filler, 0.4),
    }
    remarks = sorted((remark for remark, loss in lost.items() if loss), key=lambda remark: -lost[remark])
    return Clarity(max(1 - sum(lost.values()), 0.0), tuple(remarks))


Aspect: TypeAlias = Literal["factual", "complete", "clear"]

WOBBLE = 0.03
"""How far seed and repetition move a measure at most, on 0..1: only borderline values change their level."""

_WEIGHTS = {"name": 0.8, "identifier": 0.8}
_ASKED = 0.2
"""The weight of a fact or word that is in the question already, as to repeat it is no answer."""
_HARD = 0.7
"""The share of the facts in coverage, beside the golden answer's other words."""
_PRIMARY = 1.5
"""How much more the first fact counts."""
_STRICT = 1.5
"""The exponent that makes half of the facts less than half of the coverage."""
_FEW_WORDS = 3.0
"""Fewer words than so many count for less than their share."""
_ENOUGH_WORDS = 0.75
"""The share of words that counts as all of them, as nobody says a thing in the same words."""
_MOST_CLAIMS = 8
_EVASIVE = re.compile(
    r"\b(?:i|we)\b[^.!?]{0,30}(?:\bcannot|n't|\bnot|\bunable)\b[^.!?]{0,40}"
    r"\b(?:know|tell|say|sure|certain|verify|find|answer|help|look|access|source|information|data)\b"
    r"|\b(?:no access|no information|no data|no idea|not sure|unable to (?:find|answer|verify|help|look))\b",
    re.IGNORECASE,
)


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
    if not re.search(r"\w", sections.response or ""):
        empty = f"{_MARK}the response is empty."
        return Verdict(0.0, 0.0, 0.0, {"factual": empty, "complete": empty, "clear": empty})
    found = _compare(attrs.evolve(sections, response=_without_echo(sections)))
    measures = (_factual(found), found.complete, found.clear)
    factual, complete, clear = (min(max(m + w, 0.0), 1.0) for m, w in zip(measures, wobble, strict=True))
    return Verdict(factual, complete, clear, _reasons(found), _claims(found))


def _without_echo(sections: Sections) -> str:
    """Take the question out of the response: to repeat it is no answer."""
    asked = sections.question.strip().rstrip("?.! ")
    response = sections.response or ""
    return re.sub(re.escape(asked), "it", response, flags=re.IGNORECASE) if len(asked.split()) > 3 else response


@attrs.frozen
class _Comparison:
    """What a response has of the golden answer; `present` and `missing` are the golden answer's facts."""

    present: Sequence[Fact]
    missing: Sequence[Fact]
    words: float
    complete: float
    evasive: bool
    wrong: Sequence[Contradiction]
    clear: float
    remarks: Sequence[str]
    new: Sequence[tuple[Statement, list[Fact]]]
    golden: bool


def _compare(sections: Sections) -> _Comparison:
    golden, response, question = map(Text.read, (sections.golden, sections.response or "", sections.question))
    facts = [fact for fact in golden.facts if not fact.initial]
    present = [
        fact for fact in facts if covers(response, fact, facts) or (fact.kind == "answer" and agrees(golden, response))
    ]
    words = _words(golden, response, question)
    telling = [fact for fact in present if not covers(question, fact, facts)]
    unknown = any(fact.kind == "absence" for fact in facts)
    evasive = bool(
        _EVASIVE.search((sections.response or "").replace("’", "'"))
        and not telling
        and words.share < 0.5
        and not unknown
    )
    wrong = contradictions(golden, response, question) if sections.golden else []
    coverage = _coverage(facts, present, words, question) if sections.golden else 0.5
    complete = min(coverage, 0.08) if evasive else coverage
    answering = [
        any(covers(golden, fact, ()) and not covers(question, fact, ()) for fact in each.facts)
        or _shared(golden.words - question.words, each.words) >= 0.4
        for each in response.statements
    ]
    form = clarity(sections.response or "", sections.golden, response.statements, answering)
    remarks, clear = [*form.remarks], form.value
    if sections.golden and (evasive or complete < 0.4):
        # A form cannot be better than what there is to be found in it.
        clear = min(clear, 0.3 if evasive or complete < 0.2 else 0.6)
        remarks.insert(0, "it does not answer" if evasive else "little of the answer is in it")
    replaced = {each.response for each in wrong}
    texts = (golden, question, Text.read(sections.earlier))
    new = [
        (each, kept)
        for each, extra in added(response, texts)
        if (kept := [fact for fact in extra if fact.said not in replaced])
    ]
    missing = [fact for fact in facts if fact not in present]
    return _Comparison(
        present, missing, words.share, complete, evasive, wrong, clear, remarks, new, bool(sections.golden.strip())
    )


def _coverage(facts: Sequence[Fact], present: Sequence[Fact], words: _Words, question: Text) -> float:
    """Weigh facts and words; where the facts are few or known from the question, the words count for more."""
    weights = [_WEIGHTS.get(fact.kind, 1.0) * (_ASKED if covers(question, fact, facts) else 1.0) for fact in facts]
    # What a golden answer says first, and the question did not, is most often what was asked for.
    first = next((at for at, weight in enumerate(weights) if weight > _ASKED), None)
    if first is not None:
        weights[first] *= _PRIMARY
    whole = sum(weights)
    had = sum(weight for weight, fact in zip(weights, facts, strict=True) if fact in present)
    hard, soft = _HARD * min(whole, 1.0), (1 - _HARD) * min(words.weight / _FEW_WORDS, 1.0)
    if not hard + soft:
        return 1.0
    # Raised, as an answer with half of the facts misses what is critical.
    share = (had / whole) ** _STRICT if whole else 0.0
    return (hard * share + soft * min(words.share / _ENOUGH_WORDS, 1.0)) / (hard + soft)


@attrs.frozen
class _Words:
    """How much the golden answer's words weigh, and which share of that the response has."""

    weight: float
    share: float


def _words(golden: Text, response: Text, question: Text) -> _Words:
    weights = {  # sorted, as a sum of floats depends on the order
        word: _ASKED if shares_stem(word, question.words) else 1.0
        for each in golden.statements
        for word in sorted(each.words)
    }
    whole = sum(weights.values())
    had = sum(weight for word, weight in weights.items() if shares_stem(word, response.words))
    return _Words(whole, had / whole if whole else 1.0)


def _shared(golden: frozenset[str], words: frozenset[str]) -> float:
    return len(golden & words) / len(golden) if golden else 1.0


def _factual(found: _Comparison) -> float:
    """Measure factual adherence: what is missing costs a little, what is contradicted much."""
    if found.evasive:
        return 0.25
    value = 0.2 + 0.8 * found.complete
    for each in found.wrong:
        value = min(value, 0.5 if each.also else 0.0 if each.harmful else 0.25)
    return value


def _reasons(found: _Comparison) -> dict[Aspect, str]:
    total = len(found.present) + len(found.missing)
    if not found.golden:
        complete = "there is no golden answer to hold the response against."
    elif total:
        complete = f"{len(found.present)} of {total} facts of the golden answer are in the response"
        complete += f"; missing: {_listed(found.missing)}." if found.missing else "."
    else:
        complete = f"{found.words:.0%} of the golden answer's words are in the response."
    if found.evasive:
        complete += " It declines to answer."
    if found.wrong:
        factual = "the response contradicts the golden answer: " + "; ".join(
            f"“{each.response}” where it has “{each.golden}”" for each in found.wrong[:3]
        )
        factual += "."
    else:
        factual = "nothing in the response contradicts the golden answer"
        factual += ", but much of that is not there." if found.golden and found.complete < 0.6 else "."
    clear = f"{'; '.join(found.remarks)}." if found.remarks else "the answer is easy to find and to read."
    return {"factual": _MARK + factual, "complete": _MARK + complete, "clear": _MARK + clear}


def _listed(facts: Sequence[Fact]) -> str:
    shown = ", ".join(f"“{fact.said}”" for fact in facts[:4])
    return f"{shown} and {len(facts) - 4} more" if len(facts) > 4 else shown


def _claims(found: _Comparison) -> tuple[str, ...]:
    """Describe what each statement adds that is in neither the golden answer nor the question."""
    return tuple(
        f"“{_short(each.text)}”: {', '.join(fact.said for fact in facts)}"
        f" {'is' if len(facts) == 1 else 'are'} in neither the golden answer nor the question."
        for each, facts in found.new[:_MOST_CLAIMS]
    )


def _short(text: str) -> str:
    return text if len(text) <= 120 else f"{text[:117].rstrip()}…"


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
