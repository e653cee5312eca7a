"""Anthropic's SDK, for its API and for whatever is compatible with it."""

from __future__ import annotations

import anthropic

from keval.records.models import Endpoint
from keval_clients.client import Client, http_client


def anthropic_client(url: str, endpoint: Endpoint) -> Client:
    """Build a client. It does not repeat requests, as keval does that in one place, and sets no limit to their time.

    Raises PreflightError: the environment's variables for the network cannot be used.
    """
    http = http_client(url, endpoint, lambda path: "anthropic", "ANTHROPIC_CUSTOM_HEADERS")
    # Whatever signs a request in is added when it is sent.
    sdk = anthropic.AsyncAnthropic(
        api_key="none", base_url=http.base_url, http_client=http, max_retries=0, timeout=None
    )
    return Client(endpoint.model, sdk, anthropic.AsyncStream)
