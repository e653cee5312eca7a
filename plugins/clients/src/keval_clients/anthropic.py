"""Anthropic's SDK, for its API and for whatever is compatible with it."""

from __future__ import annotations

import anthropic

from keval.records.models import Endpoint
from keval_clients.client import Client
from keval_clients.network import custom_headers
from keval_clients.sender import base_url
from keval_clients.transport import CheapRequests, ModelTransport


class _Anthropic(CheapRequests, anthropic.AsyncAnthropic):
    pass


def anthropic_client(url: str, endpoint: Endpoint) -> Client:
    """Build a client. It does not repeat requests, as keval does that in one place, and sets no limit to their time.

    Raises PreflightError: the environment's variables for the network cannot be used.
    """
    left_out = custom_headers("ANTHROPIC_CUSTOM_HEADERS")
    http, base = ModelTransport(url, endpoint, lambda path: "anthropic", left_out), base_url(url)
    # Whatever signs a request in is added when it is sent.
    sdk = _Anthropic(api_key="none", base_url=base, http_client=http, max_retries=0, timeout=None)
    return Client(endpoint.model, sdk, base, anthropic.AsyncStream)
