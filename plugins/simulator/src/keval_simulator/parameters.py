"""Parameters: what each one of a tool wants, and how well a span of what was said fits it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any
from zoneinfo import available_timezones

import attrs

from keval_gateway import ChatTool
from keval_simulator.schema import Schema, properties_of, required_of, resolved
from keval_simulator.spans import Span
from keval_simulator.words import ORDINALS, lexicon, split_identifier, stem, stems

_KINDS = {
    word: kind
    for kind, words in {
        "url": "url uri link href website",
        "email": "email mail",
        "path": "path file filename filepath directory folder dir repo repository workbook root",
        "date": "date timestamp datetime day since until deadline due birthday",
        "time": "time hour clock",
        "ip": "ip ips cidr subnet network netmask ipv4",
        "id": "id identifier code number ref reference sku ticket uuid symbol ticker isbn sha revision",
        "expression": "expression expr formula equation calculation quantity",
        "quote": "text message content string input sentence body markdown html json csv xml value data",
        "name": "name table title city country place person author location",
        "query": "query queries q search keyword keywords term terms topic phrase subject question prompt"
        " regex pattern",
        "sql": "sql",
        "zone": "timezone tz zone",
        "currency": "currency currencies",
    }.items()
    for word in words.split()
}
_ALLOWED: Mapping[str, Sequence[str]] = {
    kind: allowed.split()
    for kind, allowed in {
        "ip": "ip",
        "id": "id code number ip quote name initial word path",
        "name": "name quote code id phrase word path initial",
        "path": "path quote url",
        "url": "url path",
        "email": "email",
        "date": "date",
        "time": "time date",
        "expression": "expression quote quantity number phrase word code",
        "quote": "quote expression id ip url email name path code phrase word number date time",
        "currency": "code id word",
        "zone": "path code name initial",
        "": "quote name id ip code email url path initial phrase word number date time",
    }.items()
}
"""The kinds of spans that may be given for each kind of parameter, the best first."""
_SOURCES = lexicon("from source src base origin start begin since old first")
_TARGETS = lexicon("to target destination dest end into until new second")
_PREPOSITIONS = lexicon("to from in for of at by on")
_HANDLES = lexicon("id name key number code")
_LINKS = lexicon("number name no id is of the a called named code with equals under at")
_LEADING = lexicon("of for in on called named about with to from")
_UNITS = (
    (lexicon("rate percent percentage interest discount tax tip"), lexicon("% percent")),
    (
        lexicon("amount principal price cost value salary loan payment balance deposit income investment budget"),
        lexicon("$ € £ dollar dollars euro euros pounds usd eur"),
    ),
    (lexicon("years year term"), lexicon("years year")),
    (lexicon("months month"), lexicon("months month")),
)
"""What names of numbers go with which units."""
_MODES = lexicon("operation action mode command method op subcommand")
_READING = lexicon("list get show read search find view status info describe count query")
_SESSIONS = lexicon("session connection handle workspace")
"""What a tool opens, and gives an id that nobody could name before."""
_COUNTS = lexicon("top first last latest limit")
_LIMITS = lexicon("limit max count top n size k results number maximum")
FORM = stems("""
    page document long large many much according often must may mean happen take need use work get one say list show
    find give search look tell first last latest most least return january february march april may june july august
    september october november december number total sum average kind type wrote written tool called named exist
    available
    """)
"""Words that say how a question is meant, and not what it is about."""
_EXAMPLE = re.compile(
    r"['\"`]([^'\"`\n]{1,60})['\"`]|(?:e\.g\.|such as|for example|example:|like)[:,]? ([^\s,;()]+(?: [A-Z][^\s,;()]+)*)"
)
_SUCH = re.compile(r"e\.g\.|\bsuch as\b|\bexample|\blike\b", re.IGNORECASE)
_EITHER = re.compile(
    r"\b(?:one of|whether|either|supports?|options?:|allowed|must be|possible values)|['\"`],? or ['\"`]", re.IGNORECASE
)


@attrs.frozen
class Parameter:
    """A parameter: the words of its name, what its schema and its description say, and the kind of span it wants."""

    name: str
    schema: Schema
    required: bool

    @property
    def words(self) -> list[str]:
        """The words of its name, as they stand."""
        return split_identifier(self.name)

    @property
    def about(self) -> str:
        """Its description."""
        return str(self.schema.get("description", ""))

    @property
    def kind(self) -> str:
        """The kind of value that it wants, by its format, its name or its description; empty for any."""
        if "sql" in split_identifier(self.about) or "SELECT" in self.about:
            return "sql"
        form = {"uri": "url", "date-time": "date", "uuid": "id"}.get(str(self.schema.get("format")), "")
        named = next((_KINDS[word] for word in reversed(self.words) if word in _KINDS), "")
        described = [
            _KINDS[word] for word in split_identifier(re.split(r"[:(.,]", self.about)[0])[:5] if word in _KINDS
        ]
        return form or named or (described[0] if described else "")

    @property
    def options(self) -> Sequence[Any]:
        """The values it is limited to by its schema, or by a description such as "'local' or 'remote'"."""
        told = _EXAMPLE.findall(self.about) if _EITHER.search(self.about) and not _SUCH.search(self.about) else []
        return self.schema.get("enum") or [quoted for quoted, _ in told if quoted]

    @property
    def examples(self) -> list[str]:
        """The values that its schema and its description give as examples."""
        told = [quoted or plain for quoted, plain in _EXAMPLE.findall(self.about)]
        return [str(each) for each in self.schema.get("examples", ())] + told


def reading(parameter: Parameter) -> list[Any]:
    """Return the options that read, of a parameter that says what a tool does: "list" of list, create and delete."""
    options = parameter.options if set(parameter.words) & _MODES else ()
    return [each for each in options if set(split_identifier(str(each))[:1]) & _READING]


def orders(question: str, verb: str) -> bool:
    """Tell whether a question orders something: "Cancel order 4", "please cancel", "I want to cancel"."""
    begins = r"(?:^|[.!?:;,] |\b(?:please|to|you|and|then|must|now) )"
    return bool(re.search(rf"{begins}{re.escape(verb)}\b", question.lower()))


def parameters_of(tool: ChatTool, schema: Schema | None = None) -> list[Parameter]:
    """Return a tool's parameters, or those of an object in them; the tool's description may say more of its own."""
    about = tool.description if schema is None else ""
    schema = tool.parameters if schema is None else schema
    required = required_of(schema)
    found = {name: resolved(each, schema) for name, each in properties_of(schema).items()}
    return [Parameter(name, {**_told_of(name, each, about), **each}, name in required) for name, each in found.items()]


def _told_of(name: str, schema: Schema, about: str) -> Schema:
    """Return what a tool's description says of a parameter: a line after its name, or a list that has its default."""
    line = re.search(rf"^[ \t*-]*`?{re.escape(name)}`?(?: \([^)\n]*\))?: +(\S.*)", about, re.MULTILINE)
    told: dict[str, Any] = {
        "description": "SQL"
        if re.search(r"SELECT|\bSQL\b", about) and name in ("query", "statement")
        else line[1]
        if line
        else ""
    }
    default = schema.get("default")
    for part in re.split(r"[:;\n]|\.\s", about) if isinstance(default, str) and "enum" not in schema else ():
        names = re.split(r",\s*(?:or |and )?", re.sub(r"\s*\([^)]*\)", "", part.strip(" .\n")))
        if default in names and len(names) > 2:
            told["enum"] = names
    return told


def fit_number(parameter: Parameter, span: Span) -> float:
    """Tell how well a number fits: its unit or its name is beside it, as in "5 days" and "limit 10"."""
    near = beside(parameter, span)
    ordinal = span.text.lower() in ORDINALS
    if (ordinal and not near) or (span.kind == "part" and span.before[0] not in parameter.words):
        return 0.0
    units = {*span.before[:1], *span.after[:1]}
    measured = any(set(parameter.words) & names and units & said for names, said in _UNITS)
    score = 2.0 + max(near, 2.5 * measured) + 2.0 * (span.kind == "part")
    return score + 3.0 * bool(set(parameter.words) & _LIMITS and _COUNTS.intersection(span.before[:1]))


def beside(parameter: Parameter, span: Span) -> float:
    """Tell how much of a parameter's name stands beside a span, and whether its preposition does."""
    names, near = set(parameter.words), span.before[:3]
    words = {stem(word) for word in names - _PREPOSITIONS - _HANDLES or names}
    score = 0.0
    for at, word in enumerate(each.split("'")[0] for each in near):
        if stem(word) in words and (at or span.kind != "word" or word in names):
            score = 2.0 if at else 3.0
        if score or word not in _LINKS:
            break
    if span.after[:1] and stem(span.after[0]) in words:
        score = max(score, 2.5)
    counted = bool(near) and bool(re.fullmatch(r"\d+|a|an|one", near[0]))
    if names & _SOURCES:
        score += 2.0 if near[:1] and near[0] in ("from", "between", "since") else 0.0
        score += (
            1.5
            if (counted and span.kind != "number")
            or (len(near) > 1 and near[0] == "in" and re.fullmatch(r"\d+|[ap]m", near[1]))
            else 0.0
        )
    if names & _TARGETS and near[:1] and not counted:
        score += 2.0 if near[0] in ("to", "into", "until") else 1.0 if near[0] in ("and", "in", "many") else 0.0
    return score


def fit(parameter: Parameter, span: Span, own: set[str]) -> float:
    """Tell how well a span fits a text parameter; 0 if it does not."""
    kind = parameter.kind
    allowed = _ALLOWED.get(kind, _ALLOWED[""])
    no_time = kind == "time" and ":" not in span.text
    if (
        span.kind not in allowed
        or no_time
        or (parameter.schema.get("format") == "date" and not span.text[:1].isdigit())
    ):
        return 0.0
    said = set(split_identifier(span.text))
    if said and (said <= set(parameter.words) or (span.kind == "code" and stems(span.text) <= own)):
        return 0.0
    near, rank = beside(parameter, span), 0 if kind == "time" else allowed.index(span.kind)
    if not near and ((kind == "id" and _SESSIONS & set(parameter.words)) or span.text.lower() in ORDINALS):
        return 0.0
    score = (3.0 - 0.1 * rank if kind and (rank == 0 or span.kind == "code") else 2.0 - 0.15 * rank) + near
    score += 2.0 * (span.kind == "quantity" and bool(set(parameter.words) & _SOURCES))
    score += 1.0 * (_shape(span.text) in map(_shape, parameter.examples))
    if span.kind == "initial":
        return 0.5
    if not kind and span.kind == "number" and not near:
        return 2.2 if set(parameter.words) & _UNITS[1][0] else 0.0
    of_units = set(parameter.words) & (_SOURCES | _TARGETS) or "unit" in split_identifier(parameter.about)
    if kind == "expression" and rank > 1 and not (of_units and (near or span.kind == "quantity")):
        return 0.0
    if span.kind in ("word", "phrase"):
        # A word of the question is a value if something says so: a name, a preposition, a definite article.
        before = span.before[:1]
        definite = before == ("the",) and span.kind == "word"
        words = stems(span.text)
        if words & own or words <= FORM or not (near or definite or _LEADING.intersection(before)):
            return 0.0
        return 0.2 if definite and not near else score
    return score


def _shape(text: str) -> str:
    """Return what a text looks like, letters and digits aside."""
    return re.sub(r"\d+", "0", re.sub(r"[^\W\d_]+", "a", text))


def written(parameter: Parameter, span: Span) -> str | None:
    """Return a span as a parameter's schema wants it, or `None` if it cannot be had that way."""
    schema = parameter.schema
    text = zone(span.text) if parameter.kind == "zone" else span.text
    pattern = schema.get("pattern")
    forms = (text, text.upper(), text.lower(), text.lstrip("#"), re.sub(r"\W+", "-", text.lower()))
    fits = [each for each in forms if schema.get("minLength", 0) <= len(each) <= schema.get("maxLength", 10_000)]
    if pattern is None:
        return fits[0] if fits else None
    return next((each for each in fits if matches(pattern, each)), None)


def matches(pattern: str, text: str) -> bool:
    """Tell whether a text has a schema's pattern; one that Python cannot read forbids nothing."""
    try:
        return re.search(pattern, text) is not None
    except re.error:
        return True


@cache
def _zones() -> list[str]:
    return sorted(available_timezones())


def zone(place: str) -> str:
    """Return the time zone of the IANA database that a place gives its name to, or the place."""
    wanted = place.lower().replace(" ", "_")
    if place in _zones():
        return place
    return next((each for each in _zones() if each.lower().split("/")[-1] == wanted), place)


def bounded(value: float, schema: Schema, kind: str) -> float | int:
    """Return a number within the bounds of a schema, as an integer where that is wanted or the same."""
    value = min(max(value, schema.get("minimum", value)), schema.get("maximum", value))
    return int(value) if kind == "integer" or float(value).is_integer() else value
