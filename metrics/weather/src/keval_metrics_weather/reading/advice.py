"""Advice: what a text recommends to do, to wear and to take, against what it advises, and with what reasons."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

import attrs

from keval_metrics_weather.reading.acts import ACTING, BEGINNING, GOOD_FOR, is_act, is_no_item
from keval_metrics_weather.reading.phrases import Hit, denied, find
from keval_metrics_weather.reading.said import said
from keval_metrics_weather.reading.words import Text, word_set

__all__ = ["Advice", "acts_advised", "advice", "advice_against", "flow_of", "reasons_given"]

_ADVISED = frozenset({"you", "we", "i", "one", "everyone", "people", "travellers", "travelers", "also", "definitely"})
_ACTIONS = frozenset(
    {"bring", "take", "wear", "carry", "pack", "dress", "consider", "avoid", "use", "plan", "keep", "grab", "opt"}
)
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
    found = [(at, at, word) for word in text.said & ACTING for at in text.index[word] if is_act(text, at)]
    found += [(at, at, word) for word in text.said & BEGINNING for at in text.index[word] if is_act(text, at)]
    for word in text.said & GOOD_FOR:
        for at in text.index[word]:
            if is_act(text, at):
                found.append((at, at, word))
    found.sort()
    return tuple(found)


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
    following = text.word_at(place + 1)
    if following in ("i", "you", "we"):
        return False  # "should you need more" and "what should I add" ask
    if following == "not" and text.word_at(place + 2) in ("need", "be"):
        return False  # "you should not need an umbrella" expects
    return following in _ACTIONS or text.word_at(place - 1) in _ADVISED


def _promised(text: Text, hit: Hit) -> bool:
    """Say whether advice is only offered, promised, asked about or told of others, rather than given."""
    place, _, keyword = hit
    word = text.words[place]
    if keyword in ("recommend", "suggest", "advise") and text.word_at(place - 1) in ("have", "has", "had", "and"):
        return word.endswith("ed") and not {"we", "i"} & {*text.words[max(place - 3, 0) : place]}
    if keyword in ("recommend", "suggest", "advise") and _only_offered(text, place):
        return True
    if not word.endswith(_NOUN_ENDINGS) or keyword.endswith(_NOUN_ENDINGS):
        return False  # a verb, or an item such as "lotion"
    if text.word_at(place + 1) == ":":
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
    if text.word_at(place + 1) not in ("what", "which", "whether", "something", "some"):
        return False
    before = text.words[max(place - _NOUN_REACH, 0) : place]
    return any(one in ("i", "we") and other in _PROMISING for one, other in pairwise(before))


def reasons_given(text: Text, reasons: tuple[str, ...]) -> tuple[str, ...]:
    """Return the reasoning words a text uses; a "since" of time ("since Monday") is none, nor "as" in "as well"."""
    found = []
    for first, last, keyword in find(text, reasons):
        following = text.word_at(last + 1)
        if keyword == "since" and (following in _AFTER_A_SINCE_OF_TIME or following.isdecimal()):
            continue
        if keyword in ("as", "given", "considering"):
            if text.words[first] != keyword or text.word_at(first - 1) not in _BEFORE_A_REASON:
                continue
            if keyword == "as" and (following in _NO_REASON_AFTER_AS or text.word_at(last + 2) == "as"):
                continue
        found.append((first, last, keyword))
    return said(text, found)


def flow_of(text: Text, words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words of order a text uses; "the next days" and "Safety First" are none."""
    found = []
    for first, last, keyword in find(text, words):
        following, before = text.word_at(last + 1), text.word_at(first - 1)
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
