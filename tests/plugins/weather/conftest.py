"""A local server that answers as OpenWeather does."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import attrs
import pytest

KEY = "a-key-of-32-letters"
# 2026-01-15 21:00 UTC, which is 2026-01-16 08:00 where the zone is eleven hours ahead.
FIRST_STEP = 1768510800
ZONE = 11 * 3600


@attrs.define
class FakeOpenWeather:
    """The fake and what was asked of it; `held` requests are answered when it closes."""

    url: str
    asked: list[tuple[str, dict[str, str]]] = attrs.field(factory=list)
    closing: threading.Event = attrs.field(factory=threading.Event)


def _current(city: str) -> Any:
    return {
        "name": city.title(),
        "sys": {"country": "XX"},
        "main": {"temp": 21.27, "feels_like": 20.94, "temp_min": 20.1, "temp_max": 22.0, "humidity": 64},
        "wind": {"speed": 3.58, "deg": 160},
        "weather": [{"id": 500, "main": "Rain", "description": "light rain"}, {"main": "Mist", "description": "mist"}],
    }


def _step(index: int) -> Any:
    """Three-hourly: rain at first, then clear; each hour a little warmer."""
    condition = {"main": "Rain", "description": "light rain"} if index < 4 else {"main": "Clear", "description": "sky"}
    low = 10.0 + index / 10
    return {
        "dt": FIRST_STEP + index * 3 * 3600,
        "main": {"temp": low, "temp_min": low, "temp_max": low + 2},
        "weather": [condition],
    }


def _answer(path: str, query: dict[str, str]) -> tuple[int, Any]:
    city = query.get("q", "")
    if query.get("appid") != KEY:
        return 401, {"cod": 401, "message": "Invalid API key."}
    match city:
        case "Nowhere":
            return 404, {"cod": "404", "message": "city not found"}
        case "Busyville":
            return 429, {"cod": 429, "message": "Your account is temporary blocked"}
        case "Brokentown":
            return 502, "bad gateway"
        case "Oddtown":
            return 200, {"cod": 200}
        case "Textville":
            return 200, "not an object"
    if path == "/data/2.5/weather":
        return 200, _current(city)
    return 200, {
        "cod": "200",
        "list": [_step(index) for index in range(40)],
        "city": {"name": city.title(), "country": "XX", "timezone": ZONE},
    }


@pytest.fixture
def openweather() -> Iterator[FakeOpenWeather]:
    """Serve the fake on loopback; it does not answer for `Slowville`."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            query = {name: values[0] for name, values in parse_qs(parts.query).items()}
            fake.asked.append((parts.path, query))
            if query.get("q") == "Slowville":
                fake.closing.wait()
                return
            status, body = _answer(parts.path, query)
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        fake = FakeOpenWeather(f"http://127.0.0.1:{server.server_address[1]}")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        yield fake
        fake.closing.set()
        server.shutdown()
        thread.join()
