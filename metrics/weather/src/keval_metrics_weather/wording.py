"""Wording: the document's keyword lists, the defaults of the metrics' options (metrics-assessment.md).

A list that the document gives in full stands as it is; one that it only exemplifies is continued in its sense.
"""

from __future__ import annotations

RECOMMENDING = ("recommend", "suggest", "should", "umbrella", "jacket")
ITEMS = (
    "umbrella", "jacket", "coat", "boots", "raincoat", "scarf", "gloves", "hat", "sweater", "layers", "sunscreen",
    "sunglasses", "cap", "beanie", "mittens", "parka", "anorak", "windbreaker", "fleece", "jumper", "pullover",
    "hoodie", "cardigan", "sweatshirt", "vest", "singlet", "shirt", "t-shirt", "blouse", "shorts", "trousers",
    "jeans", "leggings", "tights", "skirt", "suit", "socks", "shoes", "sandals", "sneakers", "trainers", "wellies",
    "wellingtons", "poncho", "waterproofs", "thermals", "long johns", "thermal underwear", "base layer",
    "warm clothing", "warm clothes", "light clothing", "light clothes", "swimsuit", "swimwear", "sun cream",
    "sunblock", "sun hat", "lip balm", "water bottle", "bottle of water", "bottled water", "blanket", "earmuffs",
    "balaclava", "rainwear", "rain gear", "footwear", "snow chains", "crampons", "bike lights", "spf",
)  # fmt: skip
REASONS = (
    "because", "due to", "since", "as", "given", "considering", "thanks to", "owing to", "in view of", "in light of",
    "taking into account",
)  # fmt: skip
ASSUMING = ("assume", "assuming", "presumably", "if you mean", "based on your last", "your usual")
ERRORS = ("error", "sorry", "couldn't", "unable")
MISSING = (
    "couldn't retrieve", "couldn't find", "couldn't get", "couldn't access", "couldn't fetch", "can't access",
    "can't find", "can't check", "can't provide", "can't retrieve", "can't get", "can't tell", "unable to",
    "unavailable", "not available", "not found", "no data", "no live", "no information", "no weather data",
    "no forecast", "don't have", "do not know", "don't know", "doesn't have", "failed to", "no such", "found no",
    "no city", "no weather for",
)  # fmt: skip
ALTERNATIVES = (
    "however", "instead", "alternatively", "alternative", "you might", "you could", "you can", "i can help", "try",
    "meanwhile",
)  # fmt: skip
FALLBACKS = (
    "online", "website", "weather app", "weather service", "general advice", "general weather", "in general",
    "typically", "usually", "later", "try again",
)  # fmt: skip
CLARIFYING = (
    "which city", "what city", "which location", "what location", "which place", "which town", "which day",
    "which date", "where are you", "where will you", "name a city", "name the city", "could you", "can you",
    "please specify", "please provide", "please tell me", "clarify", "specify", "let me know which",
    "let me know where", "more details", "do you mean", "did you mean", "what do you mean", "would you like",
)  # fmt: skip
GUIDING = (
    "please", "for example", "such as", "let me know", "happy to help", "glad to help", "i can", "you can",
    "just tell me", "try",
)  # fmt: skip
FLOW = ("first", "then", "based on", "next", "finally", "therefore")
AWARENESS = (
    "i remember", "you mentioned", "you said", "you told", "you dislike", "you don't like", "you don't enjoy",
    "you hate", "you love", "you enjoy", "you prefer", "you're sensitive", "not a fan", "your preference",
    "your preferences", "your dislike", "your love", "given your", "knowing you", "knowing that you",
    "since you like", "as you like",
)  # fmt: skip
WARMTH = (
    "jacket", "coat", "layers", "sweater", "scarf", "gloves", "hat", "boots", "bundle up", "dress warmly", "warmly",
    "warm clothes", "warm clothing", "thermal", "fleece", "hot drink", "parka", "mittens", "thermals", "jumper",
    "beanie", "wool socks", "woolly", "long johns", "anorak", "pullover", "cardigan", "blanket", "wrap up",
    "hot chocolate",
)  # fmt: skip
INDOOR = (
    "indoor", "indoors", "inside", "museum", "gallery", "cafe", "cinema", "library", "stay home", "stay in",
    "at home", "aquarium", "shopping mall", "theatre", "theater", "spa", "sauna", "coffee shop", "bookshop",
    "exhibition", "workshop", "covered market", "market hall", "cathedral",
    "planetarium", "escape room", "bowling", "swimming hall", "concert hall", "movie", "film",
)  # fmt: skip
RAINWEAR = ("umbrella", "raincoat", "rain jacket", "waterproof", "poncho", *INDOOR)
OUTDOOR = (
    "outdoor", "outdoors", "outside", "walk", "hike", "hiking", "run", "running", "jog", "picnic", "cycle", "bike",
    "park", "beach", "stroll", "sightseeing", "trail", "trek", "trekking", "ski", "skiing", "snowshoeing", "sledding",
    "skating", "rowing", "kayaking", "canoeing", "paddle", "sailing", "surfing", "swim", "swimming", "snorkelling",
    "snorkeling", "cycling", "biking", "climbing", "camping", "barbecue", "bbq", "golf", "fishing", "paragliding",
    "promenade", "ramble", "jogging", "walking", "gardening", "botanical garden",
)  # fmt: skip
WEATHER = (
    "weather", "temperature", "forecast", "degree", "celsius", "fahrenheit", "humidity", "humid", "wind", "windy",
    "rain", "rainy", "snow", "snowy", "sunny", "sun", "cloud", "cloudy", "clear", "storm", "hot", "cold", "warm",
    "cool",
)  # fmt: skip
