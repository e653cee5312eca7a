"""Accuracy: scores whether what an answer says about the weather is true (metrics-assessment.md, 1)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from typing import Any, NamedTuple, TypeAlias

import attrs

from keval import Score, Trial
from keval_metrics_weather.reading.conditions import Condition, Group
from keval_metrics_weather.reading.gazetteer import place_key
from keval_metrics_weather.reading.kinds import of_the_air
from keval_metrics_weather.reading.statements import Reading, Statement
from keval_metrics_weather.reading.times import LATER, NOW, PAST, TODAY, TONIGHT
from keval_metrics_weather.reading.words import Text, read, word_set
from keval_metrics_weather.scores import (
    FunctionalPerformance,
    check_rising,
    mark,
    neutral,
    not_negative,
    signed,
)
from keval_metrics_weather.truth import Truth
from keval_metrics_weather.turns import Asked, Turn, turn_of

_MOST_IN_REASON = 6
_NO_FORECAST = 0.2
"""What comes off where a forecast was asked for and none was told."""
_TO_COME = word_set("will expect expected forecast going should stays remains throughout until")
_IN_MANY_NAMES = word_set("new san santa saint st la los port north south east west city fort")


class _Finding(NamedTuple):
    """Statements beside the truth: `off` is in °C, `None` for a condition.

    Of temperatures with one `moment` and kind, the one that is furthest off counts.
    """

    when: str
    said: str
    actual: str
    off: float | None
    penalty: float
    statements: Sequence[Statement] = ()
    moment: Moment = None

    def __str__(self) -> str:
        cost = f": {signed(-self.penalty)}" if self.penalty else ""
        return f"said {self.said}{self.when}, actual {self.actual}{cost}"

    def evidence(self) -> dict[str, Any]:
        """Return the finding as plain data."""
        return {
            "when": self.when.removeprefix(" for ") or "now",
            "said": self.said,
            "actual": self.actual,
            "off": self.off,
            "penalty": self.penalty,
        }


@attrs.frozen
class Accuracy(FunctionalPerformance):
    """Starts at 1 and takes points off for each statement about the asked city and day that is not true.

    Temperatures up to `rounding` °C off cost nothing, up to `tolerance` 0.1, more 0.3. Neutral without ground truth,
    and when the answer states nothing that can be compared with it.
    """

    rounding: float = not_negative(1.0)
    tolerance: float = not_negative(2.0)

    def __attrs_post_init__(self) -> None:
        check_rising(self, "rounding", "tolerance", strictly=False)

    def score(self, trial: Trial) -> Score:
        """Compare the answer with `facts["weather"]` of the sample."""
        turn = turn_of(trial)
        truth, about = turn.truth, turn.asked
        if truth is None:
            return neutral("no ground truth: the sample's facts have no weather")
        answer = turn.reading
        temperatures = answer.temperatures
        spoken = answer.conditions()
        findings: list[_Finding] = []
        compared: list[_Finding] = []
        told = False
        elsewhere = _elsewhere(turn, truth)
        for known in (truth, *truth.others):
            others = elsewhere if known is truth else _elsewhere(turn, known)
            stated = [one for one in temperatures if of_the_air(one.kind) and one.place not in others]
            weather = [one for one in spoken if one.place not in others]
            if known is not truth:  # what names no place is about the first
                stated, weather = ([one for one in found if one.place] for found in (stated, weather))
            told = told or bool(stated or weather)
            temperatures_found = [*self._temperatures(stated, about, known)]
            conditions_found = [*self._conditions(weather, about, known)]
            compared += [*temperatures_found, *conditions_found]
            findings += [*_furthest_off(temperatures_found), *conditions_found]
        details = {
            "city": truth.city,
            "read": [statement.evidence() for statement in (*temperatures, *spoken)],
            "elsewhere": len([statement for statement in temperatures if statement.place in elsewhere]),
            "marks": [*_marks(answer.text, compared, (*temperatures, *spoken))],
        }
        if not findings:
            return self._nothing_compared(told, about, truth, details)
        missing = _NO_FORECAST if about.ahead and not _tells_ahead(answer, spoken, about) else 0.0
        value = max(0.0, 1.0 - sum([finding.penalty for finding in findings]) - missing)
        listed = "; ".join(map(str, findings[:_MOST_IN_REASON]))
        if missing:
            listed = f"only the present told, and a forecast asked for: {signed(-missing)}; {listed}"
        more = f"; and {len(findings) - _MOST_IN_REASON} more" if len(findings) > _MOST_IN_REASON else ""
        evidence = [finding.evidence() for finding in findings]
        return Score(round(value, 6), listed + more, details={"compared": evidence, **details})

    def _nothing_compared(self, stated: bool, about: Asked, truth: Truth, details: dict[str, Any]) -> Score:
        if about.days and not about.now and stated:
            days = ", ".join(day_named(truth, index) for index in about.days)
            told = f"no forecast for {days}: {signed(-_NO_FORECAST)}"
            return Score(1.0 - _NO_FORECAST, told, details={"compared": [], **details})
        return neutral("the answer states nothing about the asked city and day that can be compared", **details)

    def _temperatures(self, stated: Sequence[Statement], about: Asked, truth: Truth) -> Iterator[_Finding]:
        """Yield a finding for each temperature whose truth is known."""
        for temperature in stated:
            moment = moment_of(temperature.day, about, truth, temperature)
            if moment == ():
                continue
            compared = compare(temperature, moment, truth, of_today=temperature.day in (TODAY, TONIGHT))
            if compared is None:
                continue
            off, actual = compared
            told = when(moment, truth), _said(temperature), actual, off, self._penalty(off)
            yield _Finding(*told, (temperature,), moment)

    def _penalty(self, off: float) -> float:
        if off > self.tolerance:
            return 0.3
        return 0.1 if off > self.rounding else 0.0

    def _conditions(self, stated: Sequence[Statement], about: Asked, truth: Truth) -> Iterator[_Finding]:
        """Yield one finding per moment: right when any condition stated for it is the true one."""
        spoken: dict[tuple[Moment, bool], list[Statement]] = {}
        for statement in stated:
            moment = moment_of(statement.day, about, truth, None)
            if moment != () and statement.condition is not None:
                whole_day = statement.day in (TODAY, TONIGHT)
                spoken.setdefault((moment, whole_day), []).append(statement)
        for (moment, whole_day), statements in spoken.items():
            mentions = [statement.condition for statement in statements if statement.condition is not None]
            true = true_conditions(moment, whole_day, truth)
            right = _agrees(mentions, true)
            if true and right is not None:
                said = ", ".join(dict.fromkeys(("no " if m.stance == "denied" else "") + m.word for m in mentions))
                cost = 0.0 if right else 0.2
                yield _Finding(when(moment, truth), said, " or ".join(sorted(true)), None, cost, statements, moment)


def _tells_ahead(answer: Reading, spoken: Sequence[Statement], about: Asked) -> bool:
    """Say whether an answer tells anything of a day to come: by its name, as a day's span, or as what will be.

    What it does not date is about the asked days, unless they have today among them or it speaks of now.
    """
    said = [*answer.of_the_air, *spoken]
    if any(each.day not in (None, NOW, TODAY, TONIGHT, LATER, PAST) for each in said):
        return True
    undated = [each for each in said if each.day is None]
    if undated and not about.now and all(each.day is None for each in said):
        return True
    if any(each.is_range or each.kind in ("high", "low") for each in undated):
        return True
    return bool(undated) and not answer.text.said.isdisjoint(_TO_COME)


def _furthest_off(findings: Iterable[_Finding]) -> Iterable[_Finding]:
    """Return one finding per moment and kind of temperature: the one that is furthest off."""
    worst: dict[tuple[Moment, str | None], _Finding] = {}
    for finding in findings:
        key = (finding.moment, finding.statements[0].kind)
        if key not in worst or (worst[key].off or 0.0) < (finding.off or 0.0):
            worst[key] = finding
    return worst.values()


def _marks(text: Text, compared: Iterable[_Finding], stated: Iterable[Statement]) -> Iterator[dict[str, Any]]:
    """Yield the marks of all that was read: what was compared is good or bad, and the rest is neither."""
    judged = {id(each): finding for finding in compared for each in finding.statements}
    for each in stated:
        finding = judged.get(id(each))
        what = each.condition.word if each.condition is not None else each.kind
        if finding is None:
            label, kind = f"{what}, not compared", "neutral"
        else:
            label, kind = f"{what}{finding.when}, actual {finding.actual}", "bad" if finding.penalty else "good"
        yield mark(text, each.start, each.end, label, kind)


def _elsewhere(turn: Turn, truth: Truth) -> Set[str]:
    """Return the keys of the places of which a statement is not about the asked city.

    Another place counts where the asked one is named, too, or the answer tells something before it names a place.
    """
    question, answer = turn.question, turn.reading
    names = [read(truth.city).words] if truth.city else []
    keys = {place_key(words) for words in names}
    others = {place.key for place in question.cities} - keys
    if len(question.cities) == 1:
        names.append(list(question.cities[0].words))  # it may be spelled otherwise
        keys |= others
        others = set()
    words = {word for name in names for word in name} - _IN_MANY_NAMES
    elsewhere = {
        place.key
        for place in answer.places
        if place.key not in keys and (place.key in others or words.isdisjoint(place.words))
    }
    if not elsewhere:
        return elsewhere
    named = any(place.key not in elsewhere for place in answer.places)
    begins = named or any(statement.place is None for statement in answer.temperatures)
    return elsewhere if begins else others & elsewhere


def _agrees(mentions: list[Condition], true: frozenset[Group]) -> bool | None:
    """Say whether what is stated fits the truth; `None` when all that is said is only held possible."""
    asserted = [m for m in mentions if m.stance == "asserted"]
    open_to = [m for m in mentions if m.stance != "denied"]
    if any(m.groups & true for m in open_to):
        return True
    if asserted:
        return False
    ruled_out = [m for m in mentions if m.stance == "denied"]
    return not any(m.groups & true for m in ruled_out) if ruled_out else None


def _said(temperature: Statement) -> str:
    kind = "" if temperature.kind == "temperature" else f"{temperature.kind} "
    if not temperature.converted or "°C" in temperature.said:
        return kind + temperature.said
    low, high = celsius(round(temperature.low, 1)), celsius(round(temperature.high, 1))
    return f"{kind}{temperature.said} ({f'{low} to {high}' if temperature.is_range else low})"


Moment: TypeAlias = tuple[int, ...] | None
"""Indices into the forecast's days; `None` is now."""


def compare(temperature: Statement, moment: Moment, truth: Truth, of_today: bool = False) -> tuple[float, str] | None:
    """Return how far off a temperature is in °C, and the truth in words; `None` when the truth is not known.

    One that is said `of_today`, rather than of now, may be right for either.
    """
    if moment is None:
        return _compare_now(temperature, truth, of_today)
    days = [truth.days[index] for index in moment if index < len(truth.days)]
    lows = [day.low for day in days if day.low is not None]
    highs = [day.high for day in days if day.high is not None]
    if temperature.kind == "high" and highs:
        actual, off = _nearest(highs, temperature)
        return off, f"high {celsius(actual)}"
    if temperature.kind == "low" and lows:
        actual, off = _nearest(lows, temperature)
        return off, f"low {celsius(actual)}"
    if temperature.kind != "temperature" or not lows or not highs:
        return None
    low, high = min(lows), max(highs)
    if temperature.is_range and not temperature.vague:
        off = max(abs(temperature.low - low), abs(temperature.high - high))
    else:
        off = max(low - temperature.high, temperature.low - high, 0.0)
    return round(off, 6), f"{celsius(low)} to {celsius(high)}"


def _nearest(actual: Sequence[float], temperature: Statement) -> tuple[float, float]:
    """Return the true extreme nearest to a stated one, and how far off that is, at the worse end of a range."""
    nearest = min(actual, key=lambda value: abs(value - (temperature.low + temperature.high) / 2))
    if temperature.vague:
        return nearest, round(max(temperature.low - nearest, nearest - temperature.high, 0.0), 6)
    if temperature.is_range and len(actual) > 1:  # "highs between 13 and 24 °C this week"
        return max(actual), round(max(abs(min(actual) - temperature.low), abs(max(actual) - temperature.high)), 6)
    return nearest, round(max(abs(nearest - temperature.low), abs(nearest - temperature.high)), 6)


def _compare_now(temperature: Statement, truth: Truth, of_today: bool) -> tuple[float, str] | None:
    actual = truth.temperature
    if actual is None:
        return compare(temperature, (0,), truth) if truth.days else None
    if temperature.vague:
        off = max(temperature.low - actual, actual - temperature.high, 0.0)
    else:
        off = max(abs(temperature.low - actual), abs(temperature.high - actual))
    if (temperature.is_range or of_today) and off and truth.days:
        day = compare(temperature, (0,), truth)  # "between 3 and 7 °C" may be the day's range
        if day is not None and day[0] < off:
            return day
    return round(off, 6), celsius(actual)


def celsius(value: float) -> str:
    """Return a temperature as reasons show it: `-5 °C`."""
    return f"{value + 0.0:g} °C"


def moment_of(day: str | None, about: Asked, truth: Truth, temperature: Statement | None) -> Moment:
    """Return the moment that a statement is about; an empty tuple when it was not asked for."""
    days = about.days
    extreme = temperature is not None and temperature.kind in ("high", "low")
    if day is None:
        if about.now and len(days) <= 1:
            return days if extreme else None
        return days
    if day == PAST or (day == LATER and about.now and not (truth.days and 0 in days)):
        return ()
    if day == LATER:
        return (0,) if about.now else days
    if day in (NOW, TODAY, TONIGHT):
        if about.now and not extreme:
            return None
        return tuple(index for index in (0,) if index in days and truth.days)
    meant = truth.days_meant(day)
    return meant if set(meant) & set(days) else ()


def true_conditions(moment: Moment, whole_day: bool, truth: Truth) -> frozenset[Group]:
    """Return the weather at a moment; that of a `whole_day` counts beside that of now."""
    today = truth.days[0].conditions if truth.days else frozenset()
    if moment is None:
        return truth.conditions | today if whole_day or not truth.conditions else truth.conditions
    return frozenset().union(*(truth.days[index].conditions for index in moment if index < len(truth.days)))


def day_named(truth: Truth, index: int) -> str:
    """Return a day of the forecast as reasons name it."""
    day = truth.days[index].date if index < len(truth.days) else None
    return day.isoformat() if day else f"day {index + 1}"


def when(moment: Moment, truth: Truth) -> str:
    """Return a moment as reasons name it: ` for 2026-06-19`, or nothing for now."""
    if moment is None:
        return ""
    first, last = moment[0], moment[-1]
    return f" for {day_named(truth, first)}" + (f" to {day_named(truth, last)}" if first != last else "")
