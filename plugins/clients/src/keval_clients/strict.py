"""JSON as the standard has it; Python reads more than that."""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

__all__ = ["read_json"]


def read_json(text: str | bytes) -> Any:
    """Read JSON so that it can be written again; a lone surrogate, which UTF-8 has not, becomes `?`.

    Raises:
        ValueError: it is no JSON, or Python cannot hold it: NaN, a number that is too large, lists nested too deeply.
    """
    try:
        value = json.loads(text, parse_constant=_refuse, parse_float=_finite)
        escaped = "\\ud" in text.lower() if isinstance(text, str) else b"\\ud" in text.lower()
        if not escaped:
            return value
        return json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


def _finite(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):
        raise ValueError(f"{digits} is too large")
    return value
