"""OpenAI's SDK, for its API and for whatever is compatible with it."""

from __future__ import annotations

import openai

from keval.records.models import Endpoint, Wire
from keval_clients.client import Client
from keval_clients.network import custom_headers
from keval_clients.sender import base_url
from keval_clients.transport import CheapRequests, ModelTransport

_ACCOUNT = ("openai-organization", "openai-project")
"""Headers that the SDK reads from the environment; the provider sends them where they belong."""


class _OpenAI(CheapRequests, openai.AsyncOpenAI):
    pass


def openai_client(url: str, endpoint: Endpoint) -> Client:
    """Build a client. It does not repeat requests, as keval does that in one place, and sets no limit to their time.

    Raises PreflightError: the environment's variables for the network cannot be used.
    """
    left_out = (*_ACCOUNT, *custom_headers("OPENAI_CUSTOM_HEADERS"))
    http, base = ModelTransport(url, endpoint, _wire, left_out), base_url(url)
    # Whatever signs a request in is added when it is sent.
    sdk = _OpenAI(api_key="none", base_url=base, http_client=http, max_retries=0, timeout=None)
    return Client(endpoint.model, sdk, base, openai.AsyncStream)


def _wire(path: str) -> Wire:
    """Tell OpenAI's two protocols apart, which have one base URL."""
    return "openai-responses" if path.startswith("/responses") else "openai-chat"
