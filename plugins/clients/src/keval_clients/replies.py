"""Replies of model endpoints: strict JSON, token usage, and the errors for replies that cannot be read."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from functools import partial
from typing import Any, NoReturn

import orjson

from keval import KevalError
from keval.errors import ModelError, TrialError
from keval.execute.models.reply_usage import read_usage
from keval.records.models import retry_after_seconds
from keval.records.transcript import Citation

_QUOTED = 1000
_REQUEST_IDS = ("x-request-id", "request-id", "x-ms-request-id", "apim-request-id", "x-amzn-requestid", "cf-ray")


UNREACHED = "x-keval-unreached"
"""The header by which keval's proxy says that it answers by itself, as the endpoint gave no answer."""


def refused(status: int, headers: Mapping[str, str], body: bytes) -> ModelError:
    """Return the error for an answer with an HTTP status of failure: the vendor's words, a remedy, the request's id."""
    from keval.execute.models.denials import read_refusal  # where nothing is refused, it is not imported

    refusal = read_refusal(status, body)
    if headers.get(UNREACHED):
        return ModelError(refusal.text.rpartition(" (")[0])
    told, remedy = f"the model's endpoint answered with status {status}: {refusal.text}", refusal.remedy
    if "v1/responses" in told:  # where OpenAI names the API that a model is served over
        remedy = "agents ask that API with `api: responses`"
    told = f"{told.removesuffix('.')}; {remedy}" if remedy else told
    told += request_of({REQUEST: request_id(headers)})
    return ModelError(told, status=status, retry_after=retry_after_seconds(headers.get("retry-after")))


REQUEST = "_request_id"
"""Where the client notes in a reply the id of its request, as the SDKs do; vendors' support wants it."""


def request_id(headers: Mapping[str, str]) -> str | None:
    """Return the id that a vendor gave a request, by the headers of the answer."""
    return next((headers[name] for name in _REQUEST_IDS if headers.get(name)), None)


def request_of(reply: object) -> str:
    """Return what a message about a reply ends with: the id of its request, or nothing."""
    found = reply.get(REQUEST) if isinstance(reply, Mapping) else None
    return f" (request {found})" if found else ""


def no_reply(said: object) -> TrialError:
    """Return the error for a reply that does not have the API's shape; another attempt may get another one."""
    shown = {name: said[name] for name in said if name != REQUEST} if isinstance(said, dict) else said
    message = f"the model's endpoint answered with something that is no reply: {quoted(shown)}{request_of(said)}"
    return TrialError(message, stage="model", kind="bad_reply", retryable=True)


def broken_off() -> TrialError:
    """Return the error for a stream that ended before the reply did; another attempt may get all of it."""
    return TrialError("the model's reply ended in the middle", stage="model", kind="bad_reply", retryable=True)


def read_failure(error: object, reply: object = None) -> ModelError:
    """Read an error that is told within a reply, by a vendor's word or, as OpenRouter does, by an HTTP status.

    One that is no object says why by itself. `reply` is the whole reply that tells it.
    """
    from keval.execute.models.denials import status_of  # as in `refused`

    told: Mapping[str, Any] = error if isinstance(error, Mapping) else {"message": error}
    code = next((told[name] for name in ("code", "type") if type(told.get(name)) in (str, int)), None)
    said = ": ".join(str(each) for each in ("the model failed", code, told.get("message") or "no reason given") if each)
    return ModelError(quoted(said) + request_of(reply), status=status_of(told, 500 if code is None else 400))


def quoted(said: object) -> str:
    """Return the beginning of what an endpoint said, which may be a whole web page."""
    text = str(said)
    return text if len(text) <= _QUOTED else f"{text[:_QUOTED]}…"


def what_failed(error: Exception) -> str:
    """Return what failed; an error of keval's needs no name."""
    return str(error) if isinstance(error, KevalError) else f"{type(error).__name__}: {error}"


_SOURCE = (("title", "document_title", "filename", "file_id"), ("url", "source"), ("cited_text",))
"""What vendors call the title, the URL and the passage of a source."""


def citations(told: object) -> tuple[Citation, ...]:
    """Read the sources that a vendor names for a text: pages, documents and files. Anything else is left out."""
    found = []
    for each in told if isinstance(told, list) else ():
        fields = each if isinstance(each, dict) else {}
        inner = fields.get(str(fields.get("type")))  # where the chat API has them
        fields = inner if isinstance(inner, dict) else fields
        named = (next((str(fields[name]) for name in names if fields.get(name)), "") for names in _SOURCE)
        found.append(Citation(*named))
    return tuple(each for each in found if each != Citation())


def readable(told: object) -> str:
    """Return what a vendor's own tool returned as a text: JSON, if it is none, without what is encrypted."""
    return told if isinstance(told, str) else "" if told is None else json.dumps(_open(told), ensure_ascii=False)


def _open(told: Any) -> Any:
    if isinstance(told, dict):
        return {name: _open(value) for name, value in told.items() if not name.startswith("encrypted_")}
    return [_open(value) for value in told] if isinstance(told, list) else told


def read_json(text: str | bytes) -> Any:
    """Read JSON so that it can be written again; a lone surrogate, which UTF-8 has not, becomes `?`.

    Raises:
        ValueError: it is no JSON, or Python cannot hold it: NaN, a number that is too large, lists nested too deeply.
    """
    try:
        value = _DECODER.decode(text if isinstance(text, str) else text.decode())
        escaped = "\\ud" in text.lower() if isinstance(text, str) else b"\\ud" in text.lower()
        if not escaped:
            return value
        return json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def write_json(value: object) -> bytes:
    """Write JSON. Raises ValueError: it has a number that JSON has not."""
    try:
        content = orjson.dumps(value)
    except TypeError:  # a number of more than 64 bits, for example
        content = b"null"
    # orjson writes NaN as null, and takes a tenth of the time.
    return strictly(value).encode() if b"null" in content else content


strictly = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


def _finite(digits: str) -> float:
    value = float(digits)
    if math.isinf(value):
        raise ValueError(f"{digits} is too large")
    return value


_DECODER = json.JSONDecoder(parse_constant=_refuse, parse_float=_finite)


completions_usage = partial(read_usage, "openai-chat")
messages_usage = partial(read_usage, "anthropic")
"""Read the `usage` of a reply."""
