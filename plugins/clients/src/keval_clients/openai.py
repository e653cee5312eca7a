"""The client for OpenAI's API, and for whatever is compatible with it."""

from __future__ import annotations

import os

from keval.errors import PreflightError
from keval.records.models import Endpoint, Wire
from keval_clients.client import Client
from keval_clients.network import custom_headers, key_problems
from keval_clients.sender import Sender

_ACCOUNT = {"openai-organization": "OPENAI_ORG_ID", "openai-project": "OPENAI_PROJECT_ID"}
"""The headers by which a request is charged to another account of a key's, with their environment variables."""


def openai_client(url: str, endpoint: Endpoint) -> Client:
    """Build a client. It does not repeat requests, as keval does that in one place, and sets no limit to their time.

    Raises PreflightError: the environment's variables for the network cannot be used.
    """
    if problems := [each for name in _ACCOUNT.values() for each in key_problems([name])]:
        raise PreflightError(problems)
    account = {header: os.environ[variable] for header, variable in _ACCOUNT.items() if os.environ.get(variable)}
    secrets = custom_headers("OPENAI_CUSTOM_HEADERS") | account | {"authorization": f"Bearer {endpoint.api_key}"}
    return Client(endpoint.model, Sender.to(url, secrets, endpoint.max_reply_bytes), _wire, endpoint.exchange)


def _wire(path: str) -> Wire:
    """Tell OpenAI's two protocols apart, which have one base URL."""
    return "openai-responses" if path.startswith("/responses") else "openai-chat"
