"""Wording: the document's keyword lists, the defaults of the metrics' options (metrics-assessment.md).

A list that the document gives in full stands as it is; one that it only exemplifies is continued in its sense.
"""

from __future__ import annotations

from keval_metrics_weather.reading.words import vocabulary

RECOMMENDING = ("recommend", "suggest", "should", "umbrella", "jacket")
ITEMS = vocabulary("items")
REASONS = vocabulary("reasons")
ASSUMING = ("assume", "assuming", "presumably", "if you mean", "based on your last", "your usual")
ERRORS = ("error", "sorry", "couldn't", "unable")
MISSING = vocabulary("missing")
ALTERNATIVES = vocabulary("alternatives")
FALLBACKS = vocabulary("fallbacks")
CLARIFYING = vocabulary("clarifying")
GUIDING = vocabulary("guiding")
FLOW = ("first", "then", "based on", "next", "finally", "therefore")
AWARENESS = vocabulary("awareness")
WARMTH = vocabulary("warmth")
INDOOR = vocabulary("indoor")
RAINWEAR = ("umbrella", "raincoat", "rain jacket", "waterproof", "poncho", *INDOOR)
OUTDOOR = vocabulary("outdoor")
WEATHER = vocabulary("weather")
