"""The client over Anthropic's SDK."""

from __future__ import annotations

from anthropic import APIConnectionError, APIStatusError, AsyncAnthropic, AsyncStream

from keval.plugin import Endpoint
from keval_clients.client import Client
from keval_clients.exchange import through_middleware
from keval_clients.transport import http_client


def build(url: str, endpoint: Endpoint) -> Client:
    """Build a client without retries, as keval retries in one place, and without a limit to a request's time."""
    http = through_middleware(http_client(url, endpoint.max_reply_bytes), url, endpoint, lambda path: "anthropic")
    sdk = AsyncAnthropic(base_url=url, api_key=endpoint.api_key, max_retries=0, http_client=http)
    return Client(endpoint.model, sdk, APIStatusError, APIConnectionError, AsyncStream[object])
