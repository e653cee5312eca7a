"""The client: one exchange after the other with a model's endpoint, over a vendor's SDK."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import attrs
import httpx2

from keval.plugin import ModelError, TrialError, retry_after_seconds
from keval_clients.reply import no_reply, quoted
from keval_clients.strict import read_json

if TYPE_CHECKING:
    import anthropic
    import openai

__all__ = ["Client"]

_SDK: TypeAlias = "openai.AsyncOpenAI | anthropic.AsyncAnthropic"
_Refused: TypeAlias = "type[openai.APIStatusError | anthropic.APIStatusError]"
_Failed: TypeAlias = "type[openai.APIConnectionError | anthropic.APIConnectionError]"


@attrs.frozen(eq=False)
class Client:
    """An SDK's client for one model; `refused` and `failed` are the SDK's errors with and without an HTTP status.

    Each agent and each judge has one of its own, though they ask the same endpoint: to share one would make the closing
    of one depend on the other, and what takes time to build, they share (see `transport`).
    """

    model: str
    _sdk: _SDK
    _refused: _Refused
    _failed: _Failed

    async def post(
        self,
        path: str,
        body: Mapping[str, Any],
        headers: Mapping[str, str],
        requested: Callable[[bytes], object] = lambda body: None,
    ) -> dict[str, Any]:
        """Send a request and return the reply, in which only lone surrogates are replaced.

        `requested` is told the body as it is sent.

        The SDKs' own methods take 1 to 1.5 ms of CPU more, to check a request and a reply against their types.

        Raises:
            ModelError: the endpoint refused, failed or could not be reached.
            TrialError: kind `bad_reply`, it did not answer with a JSON object; `reply_too_large`.
        """
        content = json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
        requested(content)
        try:
            response = await self._sdk.post(
                path, cast_to=httpx2.Response, content=content, options={"headers": dict(headers)}
            )
        except self._refused as refused:
            wait = retry_after_seconds(refused.response.headers.get("retry-after"))
            raise ModelError(quoted(_told(refused)), status=refused.status_code, retry_after=wait) from refused
        except self._failed as failed:
            if isinstance(failed.__cause__, TrialError):
                raise failed.__cause__ from failed
            # The SDKs say no more than "Connection error."; what really failed is the cause.
            raise ModelError(f"the model's endpoint gave no answer: {failed.__cause__ or failed}") from failed
        try:
            reply = read_json(response.content)
        except ValueError as error:
            raise no_reply(response.text) from error
        if not isinstance(reply, dict):
            raise no_reply(response.text)
        return reply

    async def aclose(self) -> None:
        """Close every connection, once or more often."""
        await self._sdk.close()


def _told(refused: openai.APIStatusError | anthropic.APIStatusError) -> str:
    """Return what an endpoint said; OpenAI's SDK tells nothing of a body that has not OpenAI's own shape."""
    told, body = str(refused), refused.response.text.strip()
    return f"{told} - {body}" if told == f"Error code: {refused.status_code}" and body else told
