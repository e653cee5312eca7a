"""The client for Anthropic's API."""

from __future__ import annotations

from keval.records.models import Endpoint
from keval_clients.client import Client
from keval_clients.network import custom_headers
from keval_clients.sender import Sender

_VERSION = {"anthropic-version": "2026-10-21"}
"""The version of the API whose requests and replies keval's agent and judge write and read."""


def anthropic_client(url: str, endpoint: Endpoint) -> Client:
    """Build a client. It does not repeat requests, as keval does that in one place, and sets no limit to their time.

    Raises PreflightError: the environment's variables for the network cannot be used.
    """
    secrets = custom_headers("ANTHROPIC_CUSTOM_HEADERS") | {"authorization": f"Bearer {endpoint.api_key}"}
    sender = Sender.to(url, secrets, endpoint.max_reply_bytes)
    return Client(endpoint.model, sender, lambda path: "anthropic", endpoint.exchange, _VERSION)
