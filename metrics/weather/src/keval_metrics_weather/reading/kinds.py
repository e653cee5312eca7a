"""Kinds: tells from the words around each temperature what it is the temperature of."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias, cast

from keval_metrics_weather.reading.tables import Span
from keval_metrics_weather.reading.words import Text, after, any_of, before, matches, word_set

Kind: TypeAlias = Literal["temperature", "high", "low", "feels_like", "water", "dew_point", "usual", "record", "bound"]
"""A `bound` is none that it is said to have ("below 10 °C"); `usual` is what is normal for the season."""

# "a 20 °C high", "26 °C max", "12 °C by night"
_AFTER = re.compile(
    r" (?:, (?=overnight ))?(?:(?:\(|-|with|the) ){0,2}"
    r"(?:(?P<high>highs?|max|maximum|by day|during the day|at (?:the|its) (?:warmest|hottest))"
    r"|(?P<low>lows?|min|minimum|overnight|(?:by|at) night|during the night|at (?:the|its) (?:coldest|coolest))"
    r"|(?P<feels_like>feels like|wind chill|heat index)|(?P<dew_point>dew point)"
    r"|(?P<usual>is typical|is normal|on average))(?! (?:of|is|near|around|about|pressure|:|will|at|\d\S{0,9}) )(?= )"
)


def of_the_air(kind: Kind | None) -> bool:
    """Say whether a kind states the air's own temperature, which can be held against the truth."""
    return kind in ("temperature", "high", "low")


_Word: TypeAlias = Literal["felt", "high", "low", "rise", "fall", "plain", "usual", "record", "water", "dew", "now"]
_NO_EXTREME = (
    r"(?! (?:pressure|humidity|winds?|chance|uv|levels?|clouds?|visibility|tide|risk|pollen|probability|teens"
    r"|twenties|thirties) )"
)
_PLEASANT = any_of(
    word_set(
        "chilly cold nice pleasant great fresh warm mild muggy comfortable lovely crisp raw good hot humid sticky"
        " wintry spring springlike free cool"
    )
)
_FIGURES = any_of(
    word_set(
        "about around roughly approximately nearly almost a it minus negative is closer more just only the of"
        " temperature temp temperatures low high mid upper as an value will was and like to in at"
    )
)
_TO = r"(?= (?:at|from|(?:\S{1,64} ){0,2}to) )"
_CUE = re.compile(
    rf" (?:(?P<end>[.!?;\n|])|(?P<comma>,)|(?P<turn>but|while|whereas|though|although)|(?P<open>\()|(?P<close>\))"
    rf"|(?P<felt>feels?|feeling|felt)(?! {_PLEASANT} (?!like |as ))(?! like (?!{_FIGURES} )[^\W\d_])"
    r"|(?:wind (?P<chill>chill)|heat (?P<chill_>index))|(?P<closer>closer|nearer)"
    r"|(?P<felt_>feellike|windchill|humidex|realfeel|rf|apparent|perceived|swear|sensation)"
    rf"|(?P<high>highs?|max|maximum|peak|peaks|peaking|warmest|hottest|maximums|maxima|h(?= : )|hi)(?! - ){_NO_EXTREME}"
    r"|(?P<low>lows?|min|minimum|coldest|lowest|overnight|(?<! last )(?<! tonight )nights?|minimums|minima|l(?= : )|lo"
    rf"|nighttime|bottoms|bottoming){_NO_EXTREME}"
    r"|(?P<rise>reach|reaches|reaching|reached|hit|hits|tops|topping)"
    rf"|(?P<rise_>climb|climbs|climbing|rise|rises|rising|gets|up|warming){_TO}"
    rf"|(?P<fall>down|(?:drop|drops|dropping|dips?|dipping|falls?|falling|cools?|cooling|easing|eases|sinks|sinking){_TO})"
    r"|(?P<plain>temperatures?|temps?|actual|actually|(?<! the )air|thermometer)"
    r"|(?<! below )(?<! above )(?<! than )(?P<record>records?)(?! (?:your|my|it|how) )"
    r"|(?<! below )(?<! above )(?<! than )(?P<usual>average(?! temp)|averages|averaging|typical(?! (?:for|of) )"
    r"|typically|usually|normally|(?:normal|usual)(?= (?:highs?|lows?|temperatures?|range|for|value|max|min) ))"
    r"|(?P<water>water|sea|ocean|lake|pool|thermostat|freezes)"
    r"(?= (?:to|temp|temperatures?|is|at|:|surface|around|about|stays|reaches|\d\S{0,9}) )"
    r"|(?P<dew>dew|dewpoint)|(?P<now>now|currently|presently))(?= )"
)
_MADE_TO_FEEL = word_set("humidity wind winds breeze gusts chill swear skin damp feel feels feeling muggy")
_COMPARING = word_set("colder warmer cooler hotter closer nearer lower higher more less even much as milder")
_MARKS = frozenset({"end", "comma", "open", "close"})
_FIRM = word_set("high highs max maximum low lows min minimum h l hi lo")
_BOUND = re.compile(
    r"(?<! just)(?<! slightly)(?<! little)(?<! bit) (?:below|above|under|over|than)"
    r" (?:(?:about|around|roughly|a|the) )?$"
)


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
    cues: list[tuple[int, str]] = []
    for name, at, _ in matches(text, _CUE):
        known = cues[-1:] and cues[-1][0] == at - 1 and cues[-1][1] not in _MARKS
        joined = name == "plain" and (known or text.padded[at - 1] == "like")
        cues.append((at, "beside" if joined else name.rstrip("_")))  # "feels-like temperature"
    found: list[Seen] = []
    state, outside = _NOTHING, _NOTHING
    done = 0
    for (first, last), heads in zip(quantities, spans, strict=True):
        if heads:
            state = _NOTHING
            for begin, end in heads:
                for at, name in cues[bisect_left(cues, (begin,)) : bisect_left(cues, (end,))]:
                    state = _step(text, at, name, state)
            bars = text.index["|"]
            done = bisect_left(cues, (bars[max(bisect_left(bars, first) - 1, 0)] + 1,))
        for at, name in cues[done : bisect_left(cues, (first,))]:
            if name == "open":
                outside, state = state, Seen(whole=state.whole)
            elif name == "close":
                state = outside if outside.whole == state.whole else state
            else:
                state = _step(text, at, name, state)
        says = state
        if state.kind != "felt" and _BOUND.search(before(text, first, 3)):
            says = state._replace(kind="plain", whole="bound")
        told = _AFTER.match(after(text, last, 7))
        kind_after = cast(Kind, told.lastgroup) if told else None
        found.append(says._replace(after=kind_after))
        done = bisect_left(cues, (last + 1,))
        if kind_after:  # those words say nothing of what follows
            while done < len(cues) and cues[done][0] <= last + 4 and cues[done][1] not in _MARKS:
                done += 1
        joined = text.padded[last + 1] in ("and", "or", "to", "then", "-", "–") and text.padded[last + 2][:1].isdigit()
        if not joined:  # "highs of 33 °C and 34 °C"
            state = Seen(whole=state.whole)
    return found


def _step(text: Text, at: int, name: str, state: Seen) -> Seen:
    """Return what is said after one more word or mark."""
    word = text.words[at]
    if name == "closer" and _MADE_TO_FEEL.isdisjoint(text.words[max(at - 12, 0) : at]):
        return state
    if name in ("felt", "chill", "closer"):
        sticky = name != "felt" or not _COMPARING.isdisjoint(text.words[at + 1 : at + 5])
        return Seen("felt", True, sticky, whole=state.whole)
    if name == "end" or (name == "turn" and not (state.sticky and word in ("though", "although"))):
        return _NOTHING
    if name in ("comma", "turn"):
        return state if state.sticky else Seen(whole=state.whole)
    if name == "now":
        return Seen() if state.whole else state
    if name in ("usual", "record"):
        return state._replace(whole="usual" if name == "usual" else "record")
    if name in ("open", "close", "beside") or (name == "plain" and state.kind == "plain"):
        return state
    if name == "plain":
        return Seen(whole=state.whole)
    if state.kind in ("felt", "water", "dew"):
        return state
    if name in ("rise", "fall") and (state.firm or (state.kind == "low" and name == "fall")):
        return state
    if state.firm and state.kind != name and text.padded[at - 1] in _FIRM and word in _FIRM:
        return Seen("plain", True, whole=state.whole)  # "High / Low: 30 °C / 14 °C"
    firm = name in ("water", "dew") or word in _FIRM or (state.firm and name in ("high", "low"))
    return Seen(cast(_Word, name), firm, whole=state.whole)
