"""Openings: what people say before they come to the point, which names no place and asks for nothing."""

from __future__ import annotations

from keval_metrics_weather.reading.words import Text, word_set

__all__ = ["OPENINGS", "after_opening"]

OPENINGS = word_set(
    "actually again ah alas alright amazing anyway apologies awesome back brilliant bye cheers congrats cool"
    " correct dear excellent exactly fantastic fine goodbye good great greetings haha hello hey hi hmm honestly"
    " hooray however indeed interesting lovely maybe meanwhile nah nope no noted oh ok okay once oops pardon perfect"
    " please remind reminder right so sorry sure tell thank thanks then understood wait welcome well wonderful wow"
    " wrong yay yeah yep yes yup"
)
_PASSED_OVER = OPENINGS | word_set("me you very much a lot that all i forgot more one thing") | frozenset(".!,;:—–-\n")


def after_opening(text: Text) -> int:
    """Return the place of a message's first word that is no opening: of "and" in "Oh dear, thanks. And tomorrow?"."""
    return next((place for place, word in enumerate(text.words) if word not in _PASSED_OVER), len(text.words))
