"""Acts: the verbs by which a text says what to do, and where things to wear are no advice."""

from __future__ import annotations

from keval_metrics_weather.reading.words import Text, word_set

__all__ = ["ACTING", "BEGINNING", "GOOD_FOR", "is_act", "is_no_item"]

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
) | {*("also", "just", "definitely", "but", "instead", "maybe", "perhaps")}
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
_UNDECIDED = frozenset({"if", "whether"})
_SUBSTANCES = word_set("fog snow ice cloud clouds mist frost dust haze smog air smoke")


def is_act(text: Text, at: int) -> bool:
    """Say whether a word of `BEGINNING`, `ACTING` or `GOOD_FOR` tells the reader what to do."""
    word = text.words[at]
    before, following = text.word_at(at - 1), text.word_at(at + 1)
    if word in GOOD_FOR:
        return _suits(text, at)
    if word in ACTING and word not in BEGINNING:
        return _company(text, at, word, before, following)
    if following in _NO_ADVICE_AFTER.get(word, ()) or following in (":", "me", ")"):
        return False
    if not _WEBSITES.isdisjoint(text.words[at + 1 : at + 7]) and word in ("visit", "try", "use", "go", "get"):
        return False
    if before in ("i", "we", "you") or (before in _I_WOULD and text.word_at(at - 2) in ("i", "you", "we")):
        return _advised_by_the_speaker(text, at, before)
    if before not in _CLAUSE_BEGINS or before == "":
        return before == "" and text.capitalised(at)
    if before in _FIRM_BEGINS:
        return text.capitalised(at) or before in ("please", ":", "so", "—", "definitely", "also", ";")
    return _joined_to_an_act(text, at)


def _advised_by_the_speaker(text: Text, at: int, before: str) -> bool:
    """Say whether "I'd take …", "you could take …" or "I would wear …" advises."""
    speaker = text.word_at(at - 2)
    if before not in _I_WOULD or text.word_at(at + 2) == "any":
        return False
    if not _UNDECIDED.isdisjoint(text.words[max(at - 5, 0) : at]):
        return False
    if speaker == "i":
        return before == "would" and text.words[at] not in ("need", "keep", "go", "use", "try")
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


def _company(text: Text, at: int, word: str, before: str, following: str) -> bool:
    if word in ("advise", "advised", "advisable"):
        return before != "not" or word == "advise"
    if word == "forget":
        return before == "not"
    if word == "sure":
        return before in ("make", "be") and following in ("to", "you", "that")
    if word in ("best", "wise", "sensible", "better"):
        return (following == "to" and text.word_at(at + 2) in _TO_DO) or (word == "better" and before == "had")
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
            following == "to" and text.word_at(at + 2) in _TO_DO
        )
    return word in ("advice", "tip", "tips") and following == ":"


def _suits(text: Text, at: int) -> bool:
    """Say whether something "would be a good choice" or "could be fun"."""
    following = text.words[at + 1 : at + 7]
    stop = next(
        (n for n, word in enumerate(following) if word in (".", ",", "!", "?", "\n", ";", "if")), len(following)
    )
    near = following[:stop]
    if text.word_at(at - 1) in ("i", "which", "you") or "like" in near[:1]:
        return False
    return (
        bool(near)
        and near[0] in ("be", "suit", "serve", "make", "keep")
        and not _SUITING.isdisjoint(near)
        and "not" not in near
    )


def is_no_item(text: Text, first: int, last: int) -> bool:
    """Say whether a thing to wear or take is no advice: "a blanket of fog", "the jackets in the shops", "suit you"."""
    word, following = text.words[first], text.word_at(last + 1)
    if following in _NO_ITEM_OF and text.word_at(last + 2) in _SUBSTANCES:
        return True
    if word in ("suit", "suits") and following in ("you", "your", "the", "a"):
        return True
    if word.endswith("s") and text.word_at(first - 1) == "the" and following in ("in", "at", "on", "are", "were"):
        return True
    return word in ("cap", "layers", "boots", "fan", "shell", "tights", "cream") and text.word_at(first - 1) in (
        "ice",
        "cloud",
        "snow",
        "polar",
        "ski",
    )
