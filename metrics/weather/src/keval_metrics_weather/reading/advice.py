"""Advice: what a text recommends to do, to wear and to take, where to go, and with what reasons."""

from __future__ import annotations

from bisect import bisect_left
from functools import lru_cache
from itertools import pairwise

import attrs

from keval_metrics_weather.reading.words import Hit, Said, Text, denied, find, said, word_set

BEGINNING = word_set(
    "wear take bring carry pack grab dress drink stay avoid keep use apply put pop chuck throw visit spend try"
    " drive watch beware head go bundle layer leave plan seek remember prepare wrap stick mind enjoy limit walk get"
    " protect choose pick opt move postpone add explore relax aim reschedule hydrate consider allow prefer"
)
"""Verbs that say what to do when a clause begins with them."""

ACTING = word_set(
    "advise advised advisable forget sure best wise sensible worth better idea bet want need advice tip tips"
)
"""Words that say what to do where they stand in the right company: "it would be best to", "don't forget"."""

GOOD_FOR = word_set("would could")
_CLAUSE_BEGINS = frozenset(
    {"", ".", "!", "?", "\n", ";", ":", ",", "—", "–", "-", "|", "(", "and", "so", "or", "then", "please"}
) | {*("also", "therefore", "just", "definitely", "but", "instead", "maybe", "perhaps")}
_FIRM_BEGINS = _CLAUSE_BEGINS - {"and", ",", "or", "but", "-", "–", "then", "instead", "maybe", "perhaps"}
_COURTESY = frozenset({"safe", "tuned", "warm", "dry", "cool", "cozy", "cosy", "well", "care", "happy", "healthy"})
_NO_ADVICE_AFTER = {
    "stay": _COURTESY,
    "keep": frozenset({"in", "warm", "well", "cool"}),
    "take": frozenset({"care", "a", "place"}) - {"a"},
    "enjoy": frozenset({"your", "the", "it", "!", ".", "every"}),
    "go": frozenset({"ahead", "on"}),
    "get": frozenset({"back", "in"}),
    "try": frozenset({"again", "asking", "me", "windy", "accuweather", "a", "another", "searching", "later"}),
    "visit": frozenset({"the", "their", "a", "weather"}) - {"the", "a"},
    "watch": frozenset({"this"}),
    "use": frozenset({"your", "the"}) - {"the"},
    "drive": frozenset({"time", "times"}),
    "walk": frozenset({"along", "in", "around", "through", "on", "with", "is", "was", "would", "by", "or", "up"}),
    "plan": frozenset({"b", "a", ":", "your"}) - {"a"},
    "mind": frozenset({"you"}),
    "layer": frozenset({"of"}),
    "bundle": frozenset({"of"}),
    "put": frozenset({"simply", "another"}),
    "leave": frozenset({"it"}),
}
_WEBSITES = word_set("website site app com org accuweather weather.com meteo service online again later")
_I_WOULD = frozenset({"would", "will", "should", "could", "can", "might", "may"})
_TO_DO = BEGINNING | word_set("be skip bring stay have make do sit cycle hike hold wait")
_SUITING = word_set(
    "ideal perfect great good fine fun nice lovely suit serve choice option keep pleasant well wise best enjoyable"
)
_NO_ITEM_OF = frozenset({"of"})
_IF = frozenset({"if", "whether"})
_GIVING_A_REASON = word_set("as since because given considering due with knowing seeing thanks owing if when")
_SOFTENING = word_set("perhaps maybe please just then definitely instead")
_AFTER_A_REASON = _TO_DO | word_set("see swim ride do eat run")
_ACTS = BEGINNING | ACTING | GOOD_FOR | _AFTER_A_REASON
_DIRECT = frozenset({"best", "better", "wise", "sensible", "forget", "sure"})
_SUBSTANCES = word_set("fog snow ice cloud clouds mist frost dust haze smog air smoke")


def is_act(text: Text, at: int) -> bool:
    """Say whether a word of `BEGINNING`, `ACTING` or `GOOD_FOR` tells the reader what to do."""
    word = text.words[at]
    before, following = text.padded[at - 1], text.padded[at + 1]
    if word in GOOD_FOR:
        return _suits(text, at)
    if word in _AFTER_A_REASON and following not in _NO_ADVICE_AFTER.get(word, ()) and _follows_a_reason(text, at):
        return True
    if word not in BEGINNING and word not in ACTING:
        return False
    if word in ACTING and word not in BEGINNING:
        return _company(text, at, word, before, following)
    if following in _NO_ADVICE_AFTER.get(word, ()) or following in (":", "me", ")"):
        return False
    if not _WEBSITES.isdisjoint(text.words[at + 1 : at + 7]) and word in ("visit", "try", "use", "go", "get"):
        return False
    if before in ("i", "we", "you") or (before in _I_WOULD and text.padded[at - 2] in ("i", "you", "we")):
        return _advised_by_the_speaker(text, at, before)
    if before not in _CLAUSE_BEGINS or before == "":
        return before == "" and text.capitalised(at)
    if before in _FIRM_BEGINS:
        return text.capitalised(at) or before in ("please", ":", "so", "therefore", "—", "definitely", "also", ";")
    return _joined_to_an_act(text, at)


def _advised_by_the_speaker(text: Text, at: int, before: str) -> bool:
    """Say whether "I'd take …", "you could take …" or "I would wear …" advises."""
    speaker = text.padded[at - 2]
    if before not in _I_WOULD or text.padded[at + 2] == "any":
        return False
    if not _IF.isdisjoint(text.words[max(at - 5, 0) : at]):
        return False
    if speaker == "i":
        goes = text.words[at] == "go" and text.padded[at + 1] in ("to", "for")
        return before == "would" and (goes or text.words[at] not in ("need", "keep", "go", "use", "try"))
    return before in ("should", "could", "can", "might", "may") and text.words[at] not in ("try", "use", "get")


def _joined_to_an_act(text: Text, at: int) -> bool:
    """Say whether a verb goes on from another: "Drink plenty and stay in the shade", "Stay safe and dress warmly"."""
    for place in range(at - 1, max(at - 14, -1), -1):
        word = text.words[place]
        if word in (".", "!", "?", "\n", ";"):
            return False
        if word in BEGINNING and (place == 0 or text.words[place - 1] in _FIRM_BEGINS) and text.capitalised(place):
            return True
    return False


def _follows_a_reason(text: Text, at: int) -> bool:
    """Say whether a verb begins what is advised after a reason: "As you don't like rain, stay indoors"."""
    while at and text.words[at - 1] in _SOFTENING:
        at -= 1
    if not at or text.words[at - 1] != ",":
        return False
    for place in range(at - 2, max(at - 26, -1), -1):
        if text.words[place] in _GIVING_A_REASON and text.padded[place - 1] in _BEFORE_A_REASON:
            return True
        if text.words[place] in (".", "!", "?", "\n"):
            return False
    return False


def _company(text: Text, at: int, word: str, before: str, following: str) -> bool:
    if word in ("advise", "advised", "advisable"):
        return before != "not" or word == "advise"
    if word == "forget":
        return before == "not"
    if word == "sure":
        return before in ("make", "be") and following in ("to", "you", "that")
    if word in ("best", "wise", "sensible", "better"):
        return (following == "to" and text.padded[at + 2] in _TO_DO) or (word == "better" and before == "had")
    if word == "worth":
        return following.endswith("ing")
    if word == "idea":
        return before == "good" and "not" not in text.words[max(at - 5, 0) : at]
    if word == "bet":
        return before in ("safe", "best", "good")
    if word in ("want", "need"):
        if before not in ("will", "may", "might", "definitely", "would", "probably"):
            return False
        return ("you" in text.words[max(at - 3, 0) : at] and following != "to") or (
            following == "to" and text.padded[at + 2] in _TO_DO
        )
    return word in ("advice", "tip", "tips") and following == ":"


def _suits(text: Text, at: int) -> bool:
    """Say whether something "would be a good choice" or "could be fun"."""
    following = text.words[at + 1 : at + 7]
    stop = next(
        (n for n, word in enumerate(following) if word in (".", ",", "!", "?", "\n", ";", "if")), len(following)
    )
    near = following[:stop]
    if text.padded[at - 1] in ("i", "which", "you") or "like" in near[:1]:
        return False
    return (
        bool(near)
        and near[0] in ("be", "suit", "serve", "make", "keep")
        and not _SUITING.isdisjoint(near)
        and "not" not in near
    )


def is_no_item(text: Text, first: int, last: int) -> bool:
    """Say whether a thing to wear or take is no advice: "a blanket of fog", "the jackets in the shops", "suit you"."""
    word, following = text.words[first], text.padded[last + 1]
    if following in _NO_ITEM_OF and text.padded[last + 2] in _SUBSTANCES:
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


_ADVISED = frozenset({"you", "we", "i", "one", "everyone", "people", "travellers", "travelers", "also", "definitely"})
_ACTIONS = word_set("bring take wear carry pack dress consider avoid use plan keep grab opt")
_AFTER_A_SINCE_OF_TIME = word_set(
    "yesterday monday tuesday wednesday thursday friday saturday sunday morning noon midnight last january february"
    " march april may june july august september october november december early then dawn"
)
_NOUN_ENDINGS = ("ion", "ions")
_NOUN_REACH = 12
_PROMISING = frozenset({"can", "could", "will", "shall", "may", "might", "would"})
_SENTENCE_ENDS = frozenset(".!?\n")
_UNDECIDED = frozenset({"can", "could", "able", "unable", "if", "whether"})
_NO_REASON_AFTER_AS = word_set(
    "well follows of low high soon much far long always usual if though a an part per expected ever for to before"
    " opposed possible cold warm hot mild many usual your alternative"
)
_BEFORE_A_REASON = frozenset({",", ".", "!", "?", "\n", "", ":", ";", "—", "–", "-", "(", "so", "and", "but"})
_PEOPLE = frozenset({"you", "we", "i", "they", "people", "much", "many", "if"})
_SAYS = frozenset({"may", "might", "can", "could", "will", "would", "is", "are"})
_NO_ORDER_AFTER = word_set(
    "few day days week weeks weekend month hour hours couple two three four five seven half thing time of snow"
    " light frost several to one 24 48 12 year question and"
)


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


@lru_cache(maxsize=64)
def acts_advised(text: Text) -> tuple[Hit, ...]:
    """Return where a text says what to do: "Drink plenty", "I'd take the train", "it would be best to stay indoors"."""
    return tuple([(at, at, text.words[at]) for at in text.places_of(_ACTS) if is_act(text, at)])


def instructed(text: Text, name: str) -> bool:
    """Say whether a word stands in what its reader is told directly to do: "stay indoors, perhaps at a museum"."""
    if not isinstance(name, Said):
        return False
    last = bisect_left(text.starts, name.start)
    first = next((at + 1 for at in range(last - 1, -1, -1) if text.words[at] in _SENTENCE_ENDS), 0)
    return any(
        first <= at < last and (word in _DIRECT or not (word in GOOD_FOR | ACTING or text.padded[at - 1] in _I_WOULD))
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
    if text.words[place].endswith(_NOUN_ENDINGS) and not keyword.endswith(_NOUN_ENDINGS):
        return True
    for at in range(place - 1, max(place - _NOUN_REACH, -1), -1):
        if text.words[at] in _SENTENCE_ENDS or text.words[at] == ",":
            break
        if text.words[at] in _UNDECIDED:
            return True
    return False


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
    word = text.words[place]
    if keyword in ("recommend", "suggest", "advise") and text.padded[place - 1] in ("have", "has", "had", "and"):
        return word.endswith("ed") and not {"we", "i"} & {*text.words[max(place - 3, 0) : place]}
    if keyword in ("recommend", "suggest", "advise") and _only_offered(text, place):
        return True
    if not word.endswith(_NOUN_ENDINGS) or keyword.endswith(_NOUN_ENDINGS):
        return False  # a verb, or an item such as "lotion"
    if text.padded[place + 1] == ":":
        return False
    for at in range(place - 1, max(place - _NOUN_REACH, 0), -1):
        if text.words[at] in _SENTENCE_ENDS:
            break
        if text.words[at] in _PROMISING and text.words[at - 1] in ("i", "we", "you"):
            return True
    following = text.words[place + 1 : place + _NOUN_REACH]
    mark = next((word for word in following if word in _SENTENCE_ENDS), "")
    return mark == "?" or following[:1] == ["will"]


def _only_offered(text: Text, place: int) -> bool:
    """Say whether a verb of recommending is only promised: "once I have your dates I can … suggest what to pack"."""
    if text.padded[place + 1] not in ("what", "which", "whether", "something", "some"):
        return False
    before = text.words[max(place - _NOUN_REACH, 0) : place]
    return any(one in ("i", "we") and other in _PROMISING for one, other in pairwise(before))


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
            if text.padded[first - 1] not in _BEFORE_A_REASON and not (keyword == "as" and _is_clause(text, last + 1)):
                continue
            if keyword == "as" and (following in _NO_REASON_AFTER_AS or text.padded[last + 2] == "as"):
                continue
        found.append((first, last, keyword))
    return said(text, found)


def _is_clause(text: Text, at: int) -> bool:
    """Say whether a clause begins, of something else than the people spoken of: "light snow may …", "it is …"."""
    return text.padded[at] not in _PEOPLE and not _SAYS.isdisjoint(text.words[at + 1 : at + 5])


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
