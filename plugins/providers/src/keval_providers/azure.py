"""Azure: a resource of the user's, whose deployments are the names of models."""

from __future__ import annotations

import os
from urllib.parse import quote

from keval.plugin import Wire
from keval_providers.hosted import HostedProvider
from keval_providers.platform import Login

_NEW = frozenset({"v1", "latest", "preview"})
"""Versions that mean the API without versions."""


class AzureProvider(HostedProvider):
    """A resource of Azure, by its API without versions; with AZURE_API_VERSION chats are asked by that version."""

    def urls_of(self, name: str, login: Login) -> dict[Wire, str]:
        """Return the base URLs of a deployment."""
        urls, version = self.urls, os.environ.get("AZURE_API_VERSION")
        if version and version not in _NEW:
            root = urls["openai-chat"].removesuffix(self.ending)
            deployment = f"{root}/openai/deployments/{quote(name, safe='')}"
            urls["openai-chat"] = f"{deployment}?api-version={quote(version, safe='')}"
        return urls
