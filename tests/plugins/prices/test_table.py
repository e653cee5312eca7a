"""The price table of genai-prices, held against its own data."""

from __future__ import annotations

import socket
import subprocess
import sys
from datetime import UTC, datetime

import genai_prices
import pytest
from genai_prices import Usage, calc_price

from keval_prices import GenaiPrices
from tests.conftest import Project

MILLION = 1_000_000


@pytest.mark.parametrize(
    "model",
    ["openai/gpt-4o-mini", "openai/gpt-4o-mini-2024-07-18", "anthropic/claude-haiku-4-5", "google/gemini-2.5-flash"],
)
def test_prices_are_those_of_the_data(model: str) -> None:
    provider, _, name = model.partition("/")
    now = datetime.now(UTC)

    found = GenaiPrices().price(model)

    def theirs(**tokens: int) -> float:
        cost = calc_price(Usage(**tokens), name, provider_id=provider, genai_request_timestamp=now)
        return float(cost.total_price)

    assert found is not None
    assert theirs(input_tokens=MILLION) == pytest.approx(found.input)
    assert theirs(output_tokens=MILLION) == pytest.approx(found.output)
    assert theirs(input_tokens=MILLION, cache_read_tokens=MILLION) == pytest.approx(found.cached)
    assert 0 < (found.cached or 0) < found.input < found.output
    assert (found.source or "").startswith(f"genai-prices {genai_prices.__version__}, {provider}/")
    assert found.date in {now.date().isoformat(), datetime.now(UTC).date().isoformat()}


def test_of_a_price_in_tiers_the_lowest_counts() -> None:
    found = GenaiPrices().price("google/gemini-2.5-pro")

    def theirs(tokens: int) -> float:
        return float(calc_price(Usage(input_tokens=tokens), "gemini-2.5-pro", provider_id="google").total_price)

    assert found is not None
    assert (found.input / 10, True) == (theirs(MILLION // 10), found.input < theirs(MILLION))


def test_gemini_is_googles() -> None:
    table = GenaiPrices()

    assert table.price("google/gemini-2.5-flash") == table.price("gemini/gemini-2.5-flash") is not None


@pytest.mark.parametrize(
    "model",
    [
        "openai/a-model-of-ours",
        "simulated/any",
        "my-openai/gpt-4o",  # a provider whose name only contains another's
        "openai/text-embedding-3-small",  # has no price for output
        "perplexity/sonar",  # charges for each request, too
        "nobody/",
    ],
)
def test_what_it_does_not_know_is_unknown(model: str) -> None:
    assert GenaiPrices().price(model) is None


def test_nothing_is_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)

    assert GenaiPrices().price("openai/gpt-4o") is not None


def test_a_run_uses_it_and_does_not_import_it_before() -> None:
    code = (
        "import sys\nimport keval_prices\nfrom keval.cli import main\n"
        "main(['plugins'], standalone_mode=False)\n"
        "keval_prices.GenaiPrices()\nprint('genai_prices' in sys.modules, file=sys.stderr)"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert "False" == done.stderr.strip()
    assert "keval-prices" in done.stdout


def test_the_manifest_of_a_run_has_its_prices(project: Project) -> None:
    project.write(
        eval_yaml="""
            dataset: {path: questions.jsonl}
            agents: {paid: {type: double/paid, model: openai/gpt-4o-mini}}
            metrics: [double/length]
        """,
        questions_jsonl='{"id": "q", "question": "How?", "usage": {"input_tokens": 2000000, "output_tokens": 0}}',
    )

    project.keval("run", "eval.yaml", env={"OPENAI_API_KEY": "sk-test"})

    (arm,) = project.read("summary.json")["trials"]
    price = GenaiPrices().price("openai/gpt-4o-mini")
    assert price is not None
    assert (price.input, price.source) == tuple(
        project.read("manifest.json")["prices"]["openai/gpt-4o-mini"][key] for key in ("input", "source")
    )
    assert 2 * price.input == pytest.approx(arm["cost"]["usd"])
