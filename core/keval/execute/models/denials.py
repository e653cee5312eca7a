"""Denials: what a vendor refuses until somebody acts, such as a request of an account without credit.

The marks of all vendors are one table, `denials.toml`, which is read when a request is refused.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import attrs
import orjson

from keval.errors import ModelError
from keval.seams.finish_reason import CONTEXT_WINDOW, REFUSAL, FinishReason

_LONGEST = 500
_SEARCHED = 20_000
"""Characters of an error in which marks are searched."""
_TEXTS = ("message", "error", "msg", "detail", "error_description", "error_message", "status_msg", "title", "raw")
_CODES = ("code", "type", "status", "reason", "quotaId", "status_code")
_TAG = re.compile(r"<(?:script|style)\b[^>]*>[^<]*|<[^<>]*>", re.IGNORECASE)
_FOR_CONTENT = (400, 403, 413, 422)
_WITHIN = ("metadata", "details", "errors", "violations", "base_resp", "response")


@attrs.frozen
class Refused:
    """What an endpoint says when it refuses: its text in one line, and what mends it if asking again does not.

    It is `certain` that asking again is useless; otherwise, with a remedy, it is so of an endpoint that has answered
    nothing else.
    """

    text: str
    remedy: str | None = None
    certain: bool = False


@cache
def _table() -> Mapping[str, Any]:
    return tomllib.loads(Path(__file__).with_name("denials.toml").read_text(encoding="utf-8"))


def read_refusal(status: int, body: bytes) -> Refused:
    """Read a refusal by its HTTP status and body, which may be anything."""
    try:
        found = [*_strings(orjson.loads(body))]
    except ValueError:
        found = []
    said = [text for is_code, text in found if not is_code] or [body[:_SEARCHED].decode("utf-8", "replace")]
    # Of a proxy's web page, the words.
    texts = [*dict.fromkeys(_TAG.sub(" ", text) if text.lstrip().startswith("<") else text for text in said)]
    # A number repeats the status, and `error` is the type of each error of Anthropic's API.
    codes = [text for is_code, text in found if is_code and not text.isdecimal() and text != "error"]
    text = " ".join("; ".join(texts).split())[:_LONGEST] or "without a text"
    text += "".join(f" ({code})" for code in codes[:1] if code not in text)
    marked = " ".join((*codes, *texts))[:_SEARCHED]
    table = _table()
    causes, by_status = table["causes"], table["statuses"].get(str(status))
    if status == 408 or re.search(table["contents"]["refused"], marked, re.IGNORECASE):
        return Refused(text)
    for mark in table["marks"]:
        # a generator, so that `unless` is searched only where the pattern fits
        searched = (re.search(mark[part], marked, re.IGNORECASE) for part in ("pattern", "unless") if part in mark)
        if next(searched) and not next(searched, None):
            return Refused(text, causes[mark["cause"]], certain=mark["cause"] != "missing")
    # 403 and 404 may concern one request alone; a wrong key (401) or no credit (402) concerns all.
    return Refused(text, causes.get(by_status), certain=status in (401, 402))


def content_refused(error: ModelError) -> FinishReason | None:
    """Return why a request was refused, if that was for its content or length: as the reply to it would have ended."""
    found = (each for each in (REFUSAL, CONTEXT_WINDOW) if re.search(_table()["contents"][each.kind], str(error), re.I))
    return next(found, None) if error.status in _FOR_CONTENT else None


def reported_failure(reply: Mapping[str, Any]) -> tuple[bytes, int] | None:
    """Return the body and HTTP status of the error that a vendor reports in a reply with status 200, if it is one."""
    is_event = reply.get("type") == "error" and "error" not in reply
    failed = reply.get("response") if reply.get("type") == "response.failed" else reply
    failed = failed if isinstance(failed, dict) else {}
    error = reply if is_event else failed.get("error", failed.get("base_resp"))
    told = error if isinstance(error, dict) else {}
    # Other words stay with 200, so that only what is known to pass is repeated.
    status = status_of(told, 200)
    # MiniMax's API has a `base_resp` in each reply, with code 0 if all is well.
    return None if not error or status == 0 else (orjson.dumps(reply), status)


def status_of(told: Mapping[str, Any], otherwise: int) -> int:
    """Return the HTTP status that an error has as its code, or for which its code or type is a vendor's word."""
    code, words = told.get("code", told.get("status_code")), _table()["words"]
    if type(code) is int or (isinstance(code, str) and code.isdecimal()):
        return int(code)
    return int(words.get(str(code), words.get(str(told.get("type")), otherwise)))


def unreadable(kind: str, body: bytes) -> str | None:
    """Say why the body of an answer is no JSON, or return `None` if Python reads it nevertheless."""
    try:
        json.loads(body)
    except RecursionError:  # it is JSON so far, and whoever reads it will say more
        return None
    except ValueError as error:
        return f"the response of type {kind or 'unknown'} is no JSON: {error}"
    return None


def _strings(value: Any) -> Iterator[tuple[bool, str]]:
    """Yield the texts of an error, and its codes; what it quotes of the request is neither."""
    if isinstance(value, list):
        for each in value:
            yield from _strings(each)
    elif isinstance(value, dict):
        place = value.get("loc")  # of what is wrong, by FastAPI
        where = f"{'.'.join(map(str, place))}: " if isinstance(place, list) else ""
        for name in (*_TEXTS, *_CODES):
            if isinstance(found := value.get(name), str | int) and found:
                yield name in _CODES, f"{where if name == 'msg' else ''}{found}"
        for name in (*_TEXTS, *_WITHIN):
            if isinstance(found := value.get(name), dict | list):
                yield from _strings(found)
    elif isinstance(value, str):
        yield False, value
