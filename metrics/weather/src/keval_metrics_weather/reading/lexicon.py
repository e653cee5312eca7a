"""Lexicon: words that are never a place, however they stand."""

from __future__ import annotations

from keval_metrics_weather.reading.words import word_set

__all__ = ["NEVER_PLACES", "NO_NAMES", "NO_UNKNOWN_PLACES"]

_TIMES = word_set(
    "monday tuesday wednesday thursday friday saturday sunday mon tue wed thu fri sat sun january february march"
    " april may june july august september october november december today tomorrow tonight now yesterday weekend"
    " week day days morning afternoon evening night noon midnight spring summer autumn fall winter next last this"
    " currently right later soon christmas easter midday dawn dusk sunrise sunset hour hours minute minutes month"
    " months year"
)
_FUNCTION_WORDS = word_set(
    "a an and any are as be been being but can could did do does for from had has have he hello her here hey hi his"
    " how i if in into is it its just let like me more most my near no not of ok okay on or our out over please same"
    " she should so some such tell than thank thanks that their them then there these they those to too under up us"
    " was we well were what when where whether which who why will with would yes you your show give compare need"
    " want planning visiting going also about around at between vs versus both good great get take the by what's"
    " hows whats"
)
_WEATHER_WORDS = word_set(
    "weather forecast forecasts temperature temperatures temp temps conditions condition rain rainy snow snowy"
    " snowing raining sun sunny cloud cloudy clouds wind windy humid humidity hot cold warm cool chilly freezing"
    " celsius fahrenheit degrees degree umbrella jacket coat outdoor outdoors indoor indoors uv api openweather high"
    " low highs lows general english c f weekdays index feels current fog foggy storm stormy clear overcast dry wet"
    " heat ice icy climate"
)
NO_NAMES = _TIMES | _FUNCTION_WORDS | _WEATHER_WORDS
"""Capitalised words that are no name of a place."""

NEVER_PLACES = NO_NAMES | word_set(
    "pls plz thx tmrw tmr lol hiya anybody someone anyone kids kid sister brother mom dad mum wedding trip wear"
    " bring pack nah yep yup sure joke fun fact hmm gonna wanna gotta im ive dont cant isnt time date"
)
"""Words of a question that are never a place, though the table may list one of that name."""

NO_UNKNOWN_PLACES = NEVER_PLACES | word_set(
    "town city area place places case advance detail details short person school work office home house bed garden"
    " garage boots shoes sandals shorts jeans suit dress skirt jacket jackets tee shirt trainers sneakers heels"
    " gloves general particular mind order fact total practice theory public private class college university"
    " hospital church hotel tent car bus train plane boat traffic transit holiday vacation love danger trouble doubt"
    " need water air space nature park parks pool gym beach woods forest mountains mountain hills hill countryside"
    " country region state north south east west centre center downtown suburbs village valley lake river sea island"
    " coast city's town's camp camping hiking running cycling walking swimming skiing sailing fishing golf tennis"
    " football match game race marathon run walk hike ride swim picnic bbq barbecue party parties concert festival"
    " event events wedding meeting workshop lunch dinner breakfast brunch drinks commute school's child children"
    " baby dog dogs cat people everyone everything anything something nothing all each every other others another"
    " many few several little bit lot lots one two three four five six seven eight nine ten half quarter couple"
    " while moment present past future meantime end beginning middle start front back top bottom side left least"
    " most once twice first second third sake real life layers advice outdoors sandal plants garden laundry washing"
    " clothes outside inside sunday's my our your his her their its spring autumn winter celsius english metric"
    " imperial kelvin f c question response answer reply words plain simple table list bullet bullets points json"
    " text markdown format french german spanish italian finnish swedish"
)
"""Words in lower case that follow "in" or "for" without being a place that the table does not list."""
