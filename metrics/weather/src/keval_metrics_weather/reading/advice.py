"""Advice: what a text recommends to do, to wear and to take, where to go, and with what reasons."""

from __future__ import annotations

import re
from bisect import bisect_left
from functools import lru_cache

import attrs

from keval_metrics_weather.reading.words import (
    Hit,
    Said,
    Text,
    after,
    any_of,
    before,
    denied,
    find,
    matches,
    said,
    vocabulary,
    word_set,
)

BEGINNING = frozenset(vocabulary("beginning"))
"""Verbs that say what to do when a clause begins with them."""

_FIRM_BEGINS = frozenset({"", ".", "!", "?", "\n", ";", ":", "—", "|", "("}) | word_set(
    "so please also just definitely"
)
_FIRMER_STILL = frozenset({"please", ":", "so", "therefore", "—", "definitely", "also", ";"})
_LOOSE_BEGINS = frozenset({"and", ",", "or", "but", "-", "–"}) | word_set("then instead maybe perhaps therefore")
_NO_ORDER = re.compile(
    r" (?:stay (?:safe|tuned|warm|dry|cool|cozy|cosy|well|care|happy|healthy)|keep (?:in|warm|well|cool)"
    r"|take (?:care|place)|enjoy (?:your|the|it|!|\.|every)|go (?:ahead|on)|get (?:back|in)"
    r"|try (?:again|asking|me|windy|accuweather|a|another|searching|later)|visit (?:their|weather)|watch this|use your"
    r"|drive times?|walk (?:along|in|around|through|on|with|is|was|would|by|or|up)|plan (?:b|:|your)|mind you"
    r"|layer of|bundle of|put (?:simply|another)|leave it|\w{2,12} (?::|me|\))) "
)
_WEBSITES = word_set("website site app com org accuweather weather.com meteo service online again later")
_TO_DO = BEGINNING | word_set("be skip bring stay have make do sit cycle hike hold wait see swim ride eat run")
_SUITING = word_set(
    "ideal perfect great good fine fun nice lovely suit serve choice option keep pleasant well wise best enjoyable"
)
_IN_A_SENTENCE = r"(?:[^.!?\s]\S{0,64} )"
_REASON = r"(?:as|since|because|given|considering|due|with|knowing|seeing|thanks|owing|if|when)"
# "As you don't like rain, stay indoors"
_AFTER_A_REASON = re.compile(
    rf" {_REASON} {_IN_A_SENTENCE}{{1,24}}?, (?:(?:perhaps|maybe|please|just|then|definitely|instead) )?"
    rf"(?P<act>{any_of(_TO_DO)})(?= )"
)
# "don't forget", "it would be best to", "a good idea", "you'll want"
_IN_COMPANY = re.compile(
    rf" (?:not (?P<act>forget)|(?:make|be) (?P<act_>sure)(?= (?:to|you|that) )|(?P<act__>advise|(?<! not )advisable)"
    rf"|(?P<to>best|wise|sensible|better)(?= to {any_of(_TO_DO)} )|had (?P<better>better)"
    r"|(?P<worth>worth)(?= \w{2,20}ing )"
    rf"|good (?P<idea>idea)|(?:safe|best|good) (?P<bet>bet)|(?P<tip>advice|tips?)(?= : )"
    rf"|(?:will|may|might|definitely|would|probably) (?P<need>want|need)(?= to {any_of(_TO_DO)} )"
    rf"|you (?:\S{{1,64}} )?(?:will|may|might|definitely|would|probably) (?P<needs>want|need)(?! to ))(?= )"
)
# "I'd take the train", "you could take a walk"
_BY_THE_SPEAKER = re.compile(
    r" (?:i would (?!need |keep |use |try |go (?!to |for ))"
    r"|(?:you|we) (?:should|could|can|might|may) (?!try |use |get ))"
    rf"(?P<act>{any_of(BEGINNING)})(?= )(?! \S{{1,64}} any )"
)
# "a walk would be nice"
_SUITS = re.compile(
    r"(?<! i)(?<! which)(?<! you) (?P<act>would|could) (?=be |suit |serve |make |keep )"
    rf"(?:(?!not |if )[^.,!?;\s]\S{{0,64}} ){{0,5}}?{any_of(_SUITING)}(?= )"
)


def _orders(text: Text, at: int) -> bool:
    """Say whether a clause begins with a verb that says what to do: "Drink plenty and stay in the shade"."""
    before = text.padded[at - 1]
    if before in _FIRM_BEGINS:
        return text.capitalised(at) or before in _FIRMER_STILL
    if before not in _LOOSE_BEGINS:
        return False
    for place in range(at - 1, max(at - 14, -1), -1):  # it goes on from another
        word = text.words[place]
        if word in (".", "!", "?", "\n", ";"):
            return False
        if word in BEGINNING and (place == 0 or text.words[place - 1] in _FIRM_BEGINS) and text.capitalised(place):
            return True
    return False


@lru_cache(maxsize=64)
def acts_advised(text: Text) -> tuple[Hit, ...]:
    """Return where a text says what to do: "Drink plenty", "I'd take the train", "it would be best to stay indoors"."""
    told = [at for pattern in (_AFTER_A_REASON, _BY_THE_SPEAKER) for _, at, _ in matches(text, pattern)]
    verbs = [*told, *(at for at in text.places_of(BEGINNING) if _orders(text, at))]
    acts = [at for at in verbs if not _is_said_otherwise(text, at)]
    acts += [at for pattern in (_IN_COMPANY, _SUITS) for _, at, _ in matches(text, pattern)]
    return tuple([(at, at, text.words[at]) for at in sorted({*acts})])


def _is_said_otherwise(text: Text, at: int) -> bool:
    """Say whether a verb is a courtesy ("Stay safe!") or points to another source ("Try a weather app")."""
    elsewhere = text.words[at] in ("visit", "try", "use", "go", "get")
    elsewhere = elsewhere and not _WEBSITES.isdisjoint(text.words[at + 1 : at + 7])
    return elsewhere or _NO_ORDER.match(after(text, at - 1, 2)) is not None


_SUBSTANCES = word_set("fog snow ice cloud clouds mist frost dust haze smog air smoke")


def is_no_item(text: Text, first: int, last: int) -> bool:
    """Say whether a thing to wear or take is no advice: "a blanket of fog", "the jackets in the shops", "suit you"."""
    word, following = text.words[first], text.padded[last + 1]
    if following == "of" and text.padded[last + 2] in _SUBSTANCES:
        return True
    if word in ("suit", "suits") and following in ("you", "your", "the", "a"):
        return True
    if word.endswith("s") and text.padded[first - 1] == "the" and following in ("in", "at", "on", "are", "were"):
        return True
    return word in ("cap", "layers", "boots", "fan", "shell", "tights", "cream") and text.padded[first - 1] in (
        "ice",
        "cloud",
        "snow",
        "polar",
        "ski",
    )


_DIRECT = frozenset({"best", "better", "wise", "sensible", "forget", "sure"})
_ADVISED = frozenset({"you", "we", "i", "one", "everyone", "people", "travellers", "travelers", "also", "definitely"})
_ACTIONS = word_set("bring take wear carry pack dress consider avoid use plan keep grab opt")
_AFTER_A_SINCE_OF_TIME = frozenset(vocabulary("after a since of time"))
_NOUN_ENDINGS = ("ion", "ions")
_NOUN_REACH = 12
_PROMISING = frozenset({"can", "could", "will", "shall", "may", "might", "would", "should"})
_SENTENCE_ENDS = frozenset(".!?\n")
_UNDECIDED = re.compile(r" (?:can|could|able|unable|if|whether) (?:[^.!?,\s]\S{0,64} ){0,12}$")
_OFFERED = re.compile(rf" (?:i|we) {any_of(_PROMISING)} ")
_OFFER = re.compile(rf" (?:i|we|you) {any_of(_PROMISING - {'should'})} {_IN_A_SENTENCE}{{0,12}}$")
_ASKED_ABOUT = re.compile(rf" (?:{_IN_A_SENTENCE}{{0,12}}\?|will) ")
_NO_REASON_AFTER_AS = frozenset(vocabulary("no reason after as"))
_BEFORE_A_REASON = frozenset({",", ".", "!", "?", "\n", "", ":", ";", "—", "–", "-", "(", "so", "and", "but"})
# "light snow may …", "it is …", but not "you may …"
_CLAUSE = re.compile(
    r" (?!(?:you|we|i|they|people|much|many|if) )\S{1,64} (?:\S{1,64} ){0,3}?(?:may|might|can|could|will|would|is|are) "
)
_NO_ORDER_AFTER = frozenset(vocabulary("no order after"))


@attrs.frozen
class Advice:
    """What a text recommends: the distinct recommending words and items, in its order, and the `acts` without either.

    `start` is the offset of the first of them all.
    """

    words: tuple[str, ...]
    items: tuple[str, ...]
    start: int | None
    acts: tuple[str, ...] = ()

    @property
    def given(self) -> tuple[str, ...]:
        """All by which advice is given."""
        return self.words or self.acts


@lru_cache(maxsize=64)
def advice(text: Text, recommending: tuple[str, ...], items: tuple[str, ...]) -> Advice:
    """Return the recommendations of a text; "won't need an umbrella" and "it should be sunny" are none."""
    hits = [
        hit
        for hit in find(text, _all_words(recommending, items))
        if not denied(text, hit)
        and (hit[2] != "should" or _advises(text, hit[0]))
        and not _promised(text, hit)
        and not is_no_item(text, hit[0], hit[1])
    ]
    acts = acts_advised(text)
    if not hits and not acts:
        return Advice((), (), None)
    words = said(text, hits)
    first = min([text.starts[place] for place, _, _ in (*hits[:1], *acts[:1])])
    return Advice(words, tuple([word for word in words if word in items]), first, said(text, acts))


def instructed(text: Text, name: str) -> bool:
    """Say whether a word stands in what its reader is told directly to do: "stay indoors, perhaps at a museum"."""
    if not isinstance(name, Said):
        return False
    last = bisect_left(text.starts, name.start)
    first = next((at + 1 for at in range(last - 1, -1, -1) if text.words[at] in _SENTENCE_ENDS), 0)
    return any(
        first <= at < last and (word in _DIRECT or (word in _TO_DO and text.padded[at - 1] not in _PROMISING))
        for at, _, word in acts_advised(text)
    )


def advice_against(text: Text, recommending: tuple[str, ...], items: tuple[str, ...]) -> Advice:
    """Return what a text advises against: "you won't need an umbrella", but not "I can't recommend anything"."""
    hits = [
        hit for hit in find(text, _all_words(recommending, items)) if denied(text, hit) and not _withheld(text, hit)
    ]
    if not hits:
        return Advice((), (), None)
    words = said(text, hits)
    return Advice(words, tuple([word for word in words if word in items]), text.starts[hits[0][0]])


def _withheld(text: Text, hit: Hit) -> bool:
    """Say whether no recommendation is given, rather than one against something: "I don't know if you need a coat"."""
    place, _, keyword = hit
    is_noun = text.words[place].endswith(_NOUN_ENDINGS) and not keyword.endswith(_NOUN_ENDINGS)
    return is_noun or _UNDECIDED.search(before(text, place, _NOUN_REACH)) is not None


@lru_cache(maxsize=16)
def _all_words(recommending: tuple[str, ...], items: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*recommending, *items)))


def _advises(text: Text, place: int) -> bool:
    """Say whether a "should" is advice ("you should …") rather than expectation ("it should be sunny")."""
    following = text.padded[place + 1]
    if following in ("i", "you", "we"):
        return False  # "should you need more" and "what should I add" ask
    if following == "not" and text.padded[place + 2] in ("need", "be"):
        return False  # "you should not need an umbrella" expects
    return following in _ACTIONS or text.padded[place - 1] in _ADVISED


def _promised(text: Text, hit: Hit) -> bool:
    """Say whether advice is only offered, promised, asked about or told of others, rather than given."""
    place, _, keyword = hit
    word, earlier = text.words[place], before(text, place, _NOUN_REACH)
    if keyword in ("recommend", "suggest", "advise"):
        if text.padded[place - 1] in ("have", "has", "had", "and"):
            return word.endswith("ed") and not {"we", "i"} & {*text.words[max(place - 3, 0) : place]}
        if text.padded[place + 1] in ("what", "which", "whether", "something", "some") and _OFFERED.search(earlier):
            return True  # "once I have your dates I can suggest what to pack"
    if not word.endswith(_NOUN_ENDINGS) or keyword.endswith(_NOUN_ENDINGS) or text.padded[place + 1] == ":":
        return False  # a verb, or an item such as "lotion"
    return bool(_OFFER.search(earlier) or _ASKED_ABOUT.match(after(text, place, _NOUN_REACH)))


def reasons_given(text: Text, reasons: tuple[str, ...]) -> tuple[str, ...]:
    """Return the reasoning words a text uses; a "since" of time ("since Monday") is none, nor "as" in "as well"."""
    found = []
    for first, last, keyword in find(text, reasons):
        following = text.padded[last + 1]
        if keyword == "since" and (following in _AFTER_A_SINCE_OF_TIME or following.isdecimal()):
            continue
        if keyword in ("as", "given", "considering"):
            if text.words[first] != keyword:
                continue
            if text.padded[first - 1] not in _BEFORE_A_REASON and not (
                keyword == "as" and _CLAUSE.match(after(text, last, 5))
            ):
                continue
            if keyword == "as" and (following in _NO_REASON_AFTER_AS or text.padded[last + 2] == "as"):
                continue
        found.append((first, last, keyword))
    return said(text, found)


def flow_of(text: Text, words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words of order a text uses; "the next days" and "Safety First" are none."""
    found = []
    for first, last, keyword in find(text, words):
        following, before = text.padded[last + 1], text.padded[first - 1]
        if keyword in ("first", "next") and (
            following in _NO_ORDER_AFTER
            or following[:1].isdigit()
            or before in ("the", "your", "my", "city", "safety", "question")
            or (following in ("", "\n", "*") and text.capitalised(first))
        ):
            continue
        if not denied(text, (first, last, keyword)):
            found.append((first, last, keyword))
    return said(text, found)
