"""A price table, and one that does not work."""

import os

from keval.plugin import Price


class Prices:
    """Knows `openai/listed`; `PRICES_ASKED` names a file that gets a line for each model that it is asked for."""

    def price(self, model: str) -> Price | None:
        if journal := os.environ.get("PRICES_ASKED"):
            with open(journal, "a", encoding="utf-8") as file:
                file.write(f"{model}\n")
        return Price(1.0, 4.0, source="doubles 1.0", date="2026-11-01") if model == "openai/listed" else None


class BrokenPrices:
    """Falls over if it is asked for `openai/breaking`."""

    def price(self, model: str) -> Price | None:
        if model == "openai/breaking":
            raise ZeroDivisionError("division by zero")
        return None
