"""Requests: what a trial's last message asks for, completed by the messages that it goes on from."""

from __future__ import annotations

import attrs

from keval import Trial
from keval_metrics_weather.queries import Query, query, wants_forecast

__all__ = ["request"]


def request(trial: Trial) -> Query:
    """Read the question; one that follows up takes over what it leaves out from the user's messages before it.

    Those are its days, and what is asked for if it does not say so itself: "Do I need an umbrella tomorrow?" and, when
    asked back, "In Edinburgh." The last message that stands by itself is the furthest back to look.
    """
    question = query(trial.question)
    if not question.follows_up:
        return question
    days, forecast = question.days, question.wants_forecast
    weather, advice = question.about_weather, question.wants_advice
    open_request = not question.concerns_weather
    for message in reversed(trial.history):
        if message.role != "user":
            continue
        before = query(message.text)
        if not question.days:
            days = days or before.days
            forecast = forecast or before.wants_forecast
        if open_request:
            weather, advice = weather or before.about_weather, advice or before.wants_advice
        if before.concerns_weather and not before.follows_up:
            break
    return attrs.evolve(
        question,
        days=days,
        wants_forecast=wants_forecast(days) if days else forecast,
        about_weather=weather,
        wants_advice=advice,
    )
