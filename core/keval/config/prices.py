"""Reading the section `prices:` of a config: what models cost, in place of what price tables know."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from keval.config.source import KeyPath
from keval.config.structure import structure
from keval.errors import FieldError
from keval.models import Model
from keval.prices import Price

__all__ = ["read_prices"]

_SECTION: KeyPath = ("prices",)
_EXAMPLE = "`openai/gpt-4o-mini: {input: 0.15, output: 0.6}`"


def read_prices(data: Any, base: Path) -> tuple[dict[str, Price], list[FieldError]]:
    """Read the prices of models, by `provider/name`, and what is wrong with them.

    A price whose source is not given has the source `config`.
    """
    if data is None:
        return {}, []
    if not isinstance(data, dict):
        return {}, [FieldError(_SECTION, f"expected a mapping of models to prices, such as {_EXAMPLE}")]
    prices: dict[str, Price] = {}
    errors: list[FieldError] = []
    for model, entry in data.items():
        try:
            Model.parse(model)
        except ValueError as error:
            errors.append(FieldError((*_SECTION, model), str(error), at_key=True))
            continue
        written = {"source": "config", **entry} if isinstance(entry, dict) else entry
        price, found = structure(Price, written, (*_SECTION, model), base)
        errors += found
        if price is not None:
            prices[model] = price
    return prices, errors
