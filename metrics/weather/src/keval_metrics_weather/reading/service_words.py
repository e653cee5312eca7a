"""Service words: what assistants call services, data and what befalls them."""

from __future__ import annotations

from keval_metrics_weather.reading.words import word_set

__all__ = ["BROKEN", "GETTING", "KEPT", "MEETING", "NOT_DONE", "SERVICES", "TROUBLES"]


GETTING = word_set(
    "retrieve get fetch access find load reach pull obtain check connect provide give tell show see look determine"
    " confirm locate say display complete process return answer bring retrieving getting fetching accessing finding"
    " loading reaching pulling obtaining checking connecting looking reading querying contacting verify open query"
    " contact read download retrieved fetched accessed found loaded reached obtained displayed returned received"
    " receive shown verified determined located completed processed supply offer report"
)


SERVICES = word_set(
    "service services api tool tools server servers provider source sources station lookup query request system"
    " connection data feed backend call value reading readings figure figures measurement information database"
    " network upstream forecast endpoint site result results details observations page"
)


BROKEN = word_set(
    "down unavailable offline failed fails failing timeout refused unreachable broken empty missing inaccessible"
    " overloaded interrupted malfunctioning outage"
)


NOT_DONE = word_set(
    "respond responding answer answering available work working return returning come load loading sent reachable"
    " deliver responded answered found accessible update updating through arrive supported included functioning back"
    " known listed extend cover"
)


TROUBLES = word_set(
    "error errors issue issues problem problems trouble snag hiccup glitch difficulty difficulties fault"
)


MEETING = word_set("hit ran run having had encountered encountering experiencing met was is seems an having an")


KEPT = word_set(
    "data reading readings information info forecast figures record records results result observations"
    " measurements details access response reply luck"
)
