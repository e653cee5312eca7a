"""Kinds: tells from the words around each temperature what it is the temperature of."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

from keval_metrics_weather.reading.tables import Span
from keval_metrics_weather.reading.words import Text, word_set

Kind: TypeAlias = Literal["temperature", "high", "low", "feels_like", "water", "dew_point", "usual", "record", "bound"]
"""A `bound` is none that it is said to have ("below 10 °C"); `usual` is what is normal for the season."""


_AFTER: Mapping[str, Kind] = {
    **dict.fromkeys(("high", "highs", "max", "maximum"), "high"),
    **dict.fromkeys(("low", "lows", "min", "minimum", "overnight"), "low"),
}
_BY: Mapping[tuple[str, str], Kind] = {
    ("by", "day"): "high",
    ("by", "night"): "low",
    ("at", "night"): "low",
    ("feels", "like"): "feels_like",
    ("wind", "chill"): "feels_like",
    ("heat", "index"): "feels_like",
    ("dew", "point"): "dew_point",
    ("is", "typical"): "usual",
    ("is", "normal"): "usual",
    ("on", "average"): "usual",
}
_AT_THE: Mapping[str, Kind] = {"warmest": "high", "hottest": "high", "coldest": "low", "coolest": "low"}
_GOES_ON = frozenset({"of", "is", "near", "around", "about", "pressure", ":", "will", "at"})


def kind_after(text: Text, last: int) -> Kind | None:
    """Return what the words right after a quantity say of it: "a 20 °C high", "26 °C max", "12 °C by night"."""
    at = last + 1
    one, two = text.padded[at], text.padded[at + 1]
    if one == "," and two == "overnight":
        return "low"
    while one in ("(", "-", "with", "the") and at < last + 3:
        at += 1
        one, two = two, text.padded[at + 1]
    if one in _AFTER:
        return None if two in _GOES_ON or two[:1].isdigit() else _AFTER[one]
    three = text.padded[at + 2]
    if (one, two) in _BY:
        return None if three[:1].isdigit() or three in _GOES_ON else _BY[one, two]
    if one == "during" and two == "the" and three in ("day", "night"):
        return "high" if three == "day" else "low"
    if one == "at" and two in ("the", "its") and three in _AT_THE:
        return _AT_THE[three]
    return None


def of_the_air(kind: Kind | None) -> bool:
    """Say whether a kind states the air's own temperature, which can be held against the truth."""
    return kind in ("temperature", "high", "low")


_Word: TypeAlias = Literal["felt", "high", "low", "rise", "fall", "plain", "usual", "record", "water", "dew", "now"]

_WORDS: Mapping[str, _Word] = {
    **dict.fromkeys(("feels", "feel", "feeling", "felt", "feellike"), "felt"),
    **dict.fromkeys(("chill", "windchill", "humidex", "realfeel", "rf", "apparent", "perceived", "swear"), "felt"),
    **dict.fromkeys(("sensation", "index", "closer", "nearer"), "felt"),
    **dict.fromkeys(("high", "highs", "max", "maximum", "peak", "peaks", "peaking", "warmest", "hottest"), "high"),
    **dict.fromkeys(("maximums", "maxima", "h", "hi"), "high"),
    **dict.fromkeys(("low", "lows", "min", "minimum", "coldest", "lowest", "overnight", "night", "nights"), "low"),
    **dict.fromkeys(("minimums", "minima", "l", "lo", "nighttime", "bottoms", "bottoming"), "low"),
    **dict.fromkeys(("reach", "reaches", "reaching", "reached", "climb", "climbs", "climbing", "hit", "hits"), "rise"),
    **dict.fromkeys(("rise", "rises", "rising", "tops", "topping", "gets", "up", "warming"), "rise"),
    **dict.fromkeys(("drop", "drops", "dropping", "dip", "dips", "dipping", "fall", "falls", "falling"), "fall"),
    **dict.fromkeys(("cool", "cools", "cooling", "down", "easing", "eases", "sinks", "sinking"), "fall"),
    **dict.fromkeys(
        ("temperature", "temperatures", "temp", "temps", "actual", "actually", "air", "thermometer"), "plain"
    ),
    **dict.fromkeys(("average", "averages", "averaging", "typical", "typically", "usually", "normally"), "usual"),
    **dict.fromkeys(("normal", "usual"), "usual"),
    **dict.fromkeys(("record", "records"), "record"),
    **dict.fromkeys(("water", "sea", "ocean", "lake", "pool", "thermostat", "freezes"), "water"),
    **dict.fromkeys(("dew", "dewpoint"), "dew"),
    **dict.fromkeys(("now", "currently", "presently"), "now"),
}
_KNOWN = frozenset(_WORDS)
_TURNS = frozenset({"but", "while", "whereas", "though", "although"})
_ENDS = frozenset({".", "!", "?", ";", "\n", "|"})
_MARKS = _ENDS | {",", "(", ")"}
_EVENTS = _KNOWN | _TURNS | _MARKS
_NOT_HIGH_BEFORE = word_set(
    "pressure humidity wind winds chance uv level levels clouds cloud visibility tide risk winds pollen probability"
    " teens twenties thirties"
)
_PLEASANT = word_set(
    "chilly cold nice pleasant great fresh warm mild muggy comfortable lovely crisp raw good hot humid sticky"
    " wintry spring springlike free cool"
)
_FIGURES_AFTER = word_set(
    "about around roughly approximately nearly almost a it minus negative is closer more just only the of"
    " temperature temp temperatures low high mid upper as an value will was and like to in at"
)
_MADE_TO_FEEL = word_set("humidity wind winds breeze gusts chill swear skin damp feel feels feeling muggy")
_COMPARING = word_set("colder warmer cooler hotter closer nearer lower higher more less even much as milder")
_WATER_SAYS = word_set("to temp temperature temperatures is at : surface around about stays reaches")
_FIRM = word_set("high highs max maximum low lows min minimum h l hi lo")
_USUAL_OF = word_set("high highs low lows temperature temperatures range for value max min")
_JOINING = frozenset({"and", "or", "to", "then", "-", "–"})
_NEEDING_TO = word_set(
    "up down gets drop drops dropping dip dips dipping fall falls falling cool cools cooling easing eases sinks"
    " sinking rise rises rising climb climbs climbing warming"
)
_BOUNDS = frozenset({"below", "above", "under", "over", "than"})
_NEARLY = frozenset({"just", "slightly", "little", "bit"})
_ABOUT = frozenset({"about", "around", "roughly", "a", "the"})


class Seen(NamedTuple):
    """What the words before a quantity say of it.

    `kind` is that of the words, with `rise` and `fall` for verbs such as "climbs to", `firm` says that a noun such as
    "high" was used, and `whole` (usual or record) holds for the whole sentence. `after` is what the words right after
    it say.
    """

    kind: _Word = "plain"
    firm: bool = False
    sticky: bool = False
    after: Kind | None = None
    whole: Literal["usual", "record", "bound"] | None = None


_NOTHING = Seen()


def kinds(text: Text, quantities: Sequence[Span], spans: Sequence[Sequence[Span]]) -> list[Seen]:
    """Return for each quantity, given by its first and last place, what the words before it say.

    `spans` are, for each, the further parts of the text to read before: the heads of its row and column. A quantity
    with such heads is in a cell of its own, which nothing before it has a say in.
    """
    marks = text.places_of(_EVENTS)
    found: list[Seen] = []
    state, outside = _NOTHING, _NOTHING
    done = 0
    last_end = -9
    for (first, last), heads in zip(quantities, spans, strict=True):
        if heads:
            done = max(done, bisect_left(marks, heads[-1][1]))
            state = _NOTHING
            for begin, end in heads:
                for at in marks[bisect_left(marks, begin) : bisect_left(marks, end)]:
                    state = _step(text, at, state)
            done = bisect_right(marks, _cell_start(text, first))
        while done < len(marks) and marks[done] < first:
            at = marks[done]
            word = text.words[at]
            if word == "(":
                outside, state = state, Seen(whole=state.whole)
            elif word == ")":
                state = outside if outside.whole == state.whole else state
            elif at > last_end:
                state = _step(text, at, state)
            done += 1
        says, after = _bounded(text, first, state), kind_after(text, last)
        found.append(says if after is None else says._replace(after=after))
        last_end = last
        while done < len(marks) and marks[done] <= last:
            done += 1
        if after is not None:
            while done < len(marks) and marks[done] <= last + 4 and text.words[marks[done]] in _KNOWN:
                done += 1
        if not _continues(text, last):
            state = Seen(whole=state.whole) if state.whole not in (None, "bound") else _NOTHING
    return found


def _cell_start(text: Text, first: int) -> int:
    bars = text.index["|"]
    return bars[max(bisect_left(bars, first) - 1, 0)]


def _continues(text: Text, last: int) -> bool:
    """Say whether another quantity is joined to one that ends at a place: "highs of 33 °C and 34 °C"."""
    following = text.padded[last + 1]
    return following in _JOINING and text.padded[last + 2][:1].isdigit()


def _bounded(text: Text, first: int, state: Seen) -> Seen:
    at = first - 1
    if text.padded[at] in _ABOUT:
        at -= 1
    bound = text.padded[at] in _BOUNDS and text.padded[at - 1] not in _NEARLY and text.padded[at + 1] != "zero"
    return state._replace(kind="plain", whole="bound") if bound and state.kind != "felt" else state


def _step(text: Text, at: int, state: Seen) -> Seen:
    """Return what is said after one more word or mark."""
    word = text.words[at]
    if word in _ENDS:
        return _NOTHING
    if word == ",":
        return state if state.sticky or state is _NOTHING else Seen(whole=state.whole)
    if word in _TURNS:
        return state if state.sticky and word in ("though", "although") else _NOTHING
    if word in ("(", ")"):
        return state
    said = _WORDS[word]
    following, before = text.padded[at + 1], text.padded[at - 1]
    if said == "felt":
        return _felt(text, at, state)
    if said == "now":
        return Seen() if state.whole else state
    if said in ("usual", "record"):
        return _of_the_season(text, at, said, state)
    if said == "plain":
        if state.kind == "plain" or before in _KNOWN or before == "like" or (word == "air" and before == "the"):
            return state
        return Seen(whole=state.whole)
    if state.kind in ("felt", "water", "dew"):
        return state
    if said == "water":
        tells = following in _WATER_SAYS or following[:1].isdigit()
        return Seen("water", True, whole=state.whole) if tells else state
    if said == "dew":
        return Seen("dew", True, whole=state.whole)
    return _extreme(text, at, said, state)


def _felt(text: Text, at: int, state: Seen) -> Seen:
    word, following, before = text.words[at], text.padded[at + 1], text.padded[at - 1]
    if (word == "index" and before != "heat") or (word == "chill" and before != "wind"):
        return state
    if word in ("closer", "nearer"):
        near = text.words[max(at - 12, 0) : at]
        return state if _MADE_TO_FEEL.isdisjoint(near) else Seen("felt", True, True, whole=state.whole)
    if word in ("feels", "feel", "feeling", "felt"):
        if following in _PLEASANT and text.padded[at + 2] not in ("like", "as"):
            return state
        third = text.padded[at + 2]
        if following == "like" and third.isalpha() and third not in _FIGURES_AFTER:
            return state  # "it feels like winter"
        sticky = not _COMPARING.isdisjoint(text.words[at + 1 : at + 5])
        return Seen("felt", True, sticky, whole=state.whole)
    return Seen("felt", True, word in ("index", "chill"), whole=state.whole)


def _of_the_season(text: Text, at: int, said: Literal["usual", "record"], state: Seen) -> Seen:
    word, following, before = text.words[at], text.padded[at + 1], text.padded[at - 1]
    if word in ("normal", "usual") and (following not in _USUAL_OF or text.capitalised(at)):
        return state
    if word == "record" and following in ("your", "my", "it", "how"):
        return state
    if before in ("below", "above", "than"):
        return state
    if word == "average" and following.startswith("temp"):
        return Seen("usual", True, False, whole=state.whole)
    if word == "typical" and following in ("for", "of"):
        return state  # "15 °C, typical for July" is so now
    return state._replace(whole=said)


def _extreme(text: Text, at: int, said: _Word, state: Seen) -> Seen:
    word, following, before = text.words[at], text.padded[at + 1], text.padded[at - 1]
    if said in ("rise", "fall"):
        to = "to" in text.words[at + 1 : at + 4] or following in ("at", "from")
        if word in _NEEDING_TO and not to and word != "down":
            return state
        if state.firm or (state.kind == "low" and said == "fall"):
            return state
        return Seen(said, False, False, whole=state.whole)
    if following in _NOT_HIGH_BEFORE or (following == "-" and said == "high"):
        return state
    if word in ("h", "l") and following != ":":
        return state
    if word == "night" and before in ("last", "tonight"):
        return state
    if state.firm and state.kind != said and text.padded[at - 1] in _FIRM and word in _FIRM:
        return Seen("plain", True, False, whole=state.whole)  # "High / Low: 30 °C / 14 °C"
    return Seen(said, word in _FIRM or state.firm, False, whole=state.whole)
