"""Fields of requests that an endpoint refuses: a request goes once more without them, and later ones at once so."""

from __future__ import annotations

import asyncio
import json
import warnings
from collections.abc import Sequence
from typing import Any

import pytest

from keval.plugin import Endpoint, ModelRequest, PluginWarning, Wire
from keval_clients.sender import Sender
from tests.plugins.clients.conftest import http, serve

SENT = {
    "model": "m",
    "messages": [{"role": "user", "content": "Why?", "name": "ada"}, {"role": "assistant", "audio": None}],
    "seed": 2**70,
    "max_tokens": 5,
    "temperature": 0.5,
    "user": "ada",
    "include": ["reasoning.encrypted_content"],
    "stream_options": {"include_usage": True},
    "response_format": None,
    "tools": [{"type": "function", "function": {"name": "add", "strict": True}}, {"name": "of responses"}],
}
FORBIDDEN = {"type": "extra_forbidden", "msg": "Extra inputs are not permitted"}
FINE = "200 OK", {"said": "Because."}


def refusal(body: object, status: str = "400 Bad Request") -> tuple[str, object]:
    return status, body


def of(*places: list[Any]) -> object:
    """What FastAPI says of fields at these places."""
    return {"detail": [{**FORBIDDEN, "loc": place, "input": {"loc": ["temperature"]}} for place in places]}


def sent(
    *answers: tuple[str, object], wire: Wire = "openai-chat", bodies: Sequence[object] = (SENT,)
) -> tuple[list[Any], list[int]]:
    """Send requests for which an endpoint gives these answers; return the bodies that arrived, and what came back."""
    left = [http(body, status) for status, body in answers]

    async def answer() -> bytes:
        return left.pop(0)

    async def scenario() -> tuple[list[Any], list[int]]:
        async with serve(answer) as scene:
            endpoint = Endpoint("m", {wire: scene.url}, "key")
            requests = [ModelRequest("m", wire, "POST", "/x", {}, json.dumps(body).encode()) for body in bodies]
            statuses = []
            for request in requests:
                sender = Sender.to(scene.url, endpoint)  # each has one of its own, as an agent and a judge have
                statuses.append((await sender.send(request)).status)
                await sender.aclose()
            return [json.loads(asked.partition(b"\r\n\r\n")[2]) for asked in scene.asked], statuses

    return asyncio.run(scenario())


def lacking(*names: str, **added: object) -> dict[str, Any]:
    return {**{name: value for name, value in SENT.items() if name not in names}, **added}


UNKNOWN = 'Invalid JSON payload received. Unknown name "seed": Cannot find field.'
USE = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
GROQ = "'messages.0' : for 'role:user' the following must be satisfied[('messages.0' : property 'name' is unsupported)]"
MISTRAL = {"object": "error", "message": of(["body", "seed"]), "type": "invalid_request_error", "param": None}
CASES = {
    "google": (
        [{"error": {"code": 400, "message": UNKNOWN}}],
        lacking("seed"),
        ["takes no `seed`; its replies repeat"],
    ),
    "mistral": (MISTRAL, lacking("seed"), ["takes no `seed`"]),
    "text": ({"error": "Unrecognized request argument supplied: user"}, lacking("user"), ["takes no `user`"]),
    "two": (
        of(["body", "seed"], ["body", "stream_options"]),
        lacking("seed", "stream_options"),
        ["takes no `seed`", "takes no `stream_options`"],
    ),
    "other name": (
        {"error": {"message": USE, "param": "max_tokens"}},
        lacking("max_tokens", max_completion_tokens=5),
        ["takes `max_tokens` as `max_completion_tokens` alone"],
    ),
    "place in it": ({"error": {"message": "Invalid value.", "param": "include[0]"}}, lacking("include"), []),
    "place in it (FastAPI)": (of(["body", "include", 0]), lacking("include"), []),
    "what it is": ({"error": {"message": "Encrypted content is not supported."}}, lacking("include"), []),
    "router": (
        {"error": {"message": "Provider returned error", "metadata": {"raw": json.dumps(of(["body", "seed"]))}}},
        lacking("seed"),
        ["takes no `seed`"],
    ),
    "null": ({"error": {"message": "response_format: must be an object"}}, lacking("response_format"), []),
    "message": (
        {"error": {"message": GROQ}},
        lacking(messages=[{"role": "user", "content": "Why?"}, SENT["messages"][1]]),  # type: ignore[index]
        ["takes no `messages.name`"],
    ),
    "tool": (
        {"error": {"message": "Unknown parameter.", "param": "tools[0].function.strict"}},
        lacking(tools=[{"type": "function", "function": {"name": "add"}}, {"name": "of responses"}]),
        ["takes no `tools.strict`"],
    ),
}


@pytest.mark.parametrize(("told", "taken", "warned"), CASES.values(), ids=[*CASES])
def test_a_refused_field_is_left_out_once_for_all_and_told(told: object, taken: object, warned: list[str]) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        arrived, statuses = sent(refusal(told), FINE, FINE, bodies=[SENT, SENT])

    assert ([SENT, taken, taken], [200, 200]) == (arrived, statuses)
    assert [PluginWarning] * len(warned) == [each.category for each in caught]
    assert all(words in str(each.message) for words, each in zip(warned, caught, strict=True))


def test_fields_are_refused_one_after_the_other_until_nothing_is_left_to_leave_out() -> None:
    refusals = [{"error": {"message": f"{name} is not supported"}} for name in ("seed", "max_tokens", "stream_options")]
    again = {"error": {"message": "max_completion_tokens is not supported"}}

    arrived, statuses = sent(*map(refusal, [*refusals, again]))

    assert (4, [400]) == (len(arrived), statuses)
    assert lacking("seed", "max_tokens", "stream_options", max_completion_tokens=5) == arrived[-1]


@pytest.mark.parametrize(
    "told",
    [
        {"error": {"message": "Unsupported value: 'temperature'; a seed is fine", "param": "temperature"}},
        {"error": {"message": "No temperature here; but a seed is fine."}},
        {"error": {"message": "max_tokens is too large: 5; this model writes at most 4", "param": "max_tokens"}},
        {"error": {"message": "the user asked to include a name in the store"}},
        of(["body", "messages", 0, "content"]),
        {"error": {"message": "stream is not supported", "param": "stream"}},
        "no words",
    ],
    ids=str,
)
def test_what_a_user_sets_is_sent_as_it_is(told: object) -> None:
    assert ([SENT], [400]) == sent(refusal(told))


@pytest.mark.parametrize("status", ["404 Not Found", "429 Too Many Requests", "500 Internal Server Error"])
def test_another_status_refuses_no_field(status: str) -> None:
    assert 1 == len(sent(refusal(MISTRAL, status))[0])


def test_a_field_that_an_error_names_by_chance_is_sent_again() -> None:
    chance = refusal({"error": {"message": "the answer 'the seed is 3' is not allowed"}})

    arrived, statuses = sent(chance, chance, FINE, bodies=[SENT, SENT])

    assert ([SENT, lacking("seed"), SENT], [400, 200]) == (arrived, statuses)


def test_a_format_that_was_refused_where_it_was_null_is_sent_where_it_is_not() -> None:
    judged = {**SENT, "response_format": {"type": "json_object"}}

    arrived, _ = sent(refusal({"detail": "response_format is null"}), FINE, FINE, bodies=[SENT, judged])

    assert judged == arrived[-1]


def test_a_field_of_any_name_may_be_sent() -> None:
    odd = {**SENT, "(": None, "tools.x": None, "a.b": 1}

    assert ([odd], [400]) == sent(refusal({"error": "( is not supported"}), bodies=[odd])


def test_of_gemini_the_seed_of_the_settings_is_left_out() -> None:
    body = {"contents": [], "generationConfig": {"seed": 1, "temperature": 0.5}}
    told = {"error": {"message": "Unknown name \"seed\" at 'generation_config': Cannot find field."}}

    with pytest.warns(PluginWarning, match=r"takes no `generationConfig\.seed`"):
        arrived, _ = sent(refusal(told), FINE, wire="gemini", bodies=[body])

    assert {"contents": [], "generationConfig": {"temperature": 0.5}} == arrived[-1]
