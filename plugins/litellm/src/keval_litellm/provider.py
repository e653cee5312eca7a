"""The providers, by LiteLLM's names: each starts a server on loopback with LiteLLM behind it."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import ClassVar

import attrs

from keval.errors import PreflightError
from keval.records.models import Endpoint, Wire
from keval_clients.network import variable_problems
from keval_providers.keys import Key, find_key
from keval_providers.platform import SignIn

KEY_VARIABLE = "KEVAL_LITELLM_KEY"
"""The environment variable with the API key that the server admits; a command's argument shows in `ps`."""
_QUIET = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # otherwise its import fetches a map of prices
    "LITELLM_OFFLINE_MODE": "true",  # no list or tokenizer is fetched
    "LITELLM_TELEMETRY_GROUPS": "",
    "LITELLM_MODE": "PRODUCTION",  # otherwise it reads a file .env
}
ANY = "litellm"
"""The provider whose models are named `litellm/PROVIDER/NAME`, for every provider that LiteLLM knows."""


@attrs.frozen
class LiteLLMProvider:
    """A provider that LiteLLM reaches, with the credentials that it finds in the environment.

    `key_variables` are those that may hold a key; with `key_optional`, there are other credentials, such as files of
    an account. `startup` and `shutdown` are how long the server's process may take for each, in seconds.
    """

    wires: ClassVar[tuple[Wire, ...]] = ("openai-chat", "openai-responses", "anthropic")

    name: str
    key_variables: tuple[str, ...] = ()
    key_optional: bool = False
    startup: float = 120.0
    shutdown: float = 5.0

    @asynccontextmanager
    async def open(self, names: Sequence[str], seed: int) -> AsyncIterator[Mapping[str, Endpoint]]:
        """Start the server, yield an endpoint per name, and end it.

        Raises:
            PreflightError: a key is not set, a name lacks its provider, or the server does not come up.
        """
        # asyncio's subprocesses take long to import.
        from keval_gateway.chat import wire_urls
        from keval_loopback.process import ServerProgram, run_server

        found, key = self._key(names), secrets.token_urlsafe(24)
        # LiteLLM knows of no file and no keyring, and an error of the vendor's may have the key.
        given, secret = ({}, ()) if found is None else ({found.variable: found.value}, ((found.where, found.value),))
        program = ServerProgram(
            module="keval_litellm",
            options=(f"--provider={self.name}",),
            environ={**_QUIET, KEY_VARIABLE: key, **given},
            name=f"the server of LiteLLM for {self.name}/ models",
            by_hand=f"python -m keval_litellm --provider={self.name} --port=0",
            lost=f"no {self.name}/ model can be asked any more",
        )
        async with run_server(program, startup=self.startup, shutdown=self.shutdown) as base:
            urls = {wire: url for wire, url in wire_urls(base).items() if wire in self.wires}
            platform = SignIn(key=key, secrets=secret)
            login = f"the key in {found.where}" if found else ""
            yield {name: Endpoint(name, urls, key, platform=platform, login=login) for name in names}

    def _key(self, names: Sequence[str]) -> Key | None:
        """Return the vendor's key, if it has one. Raises PreflightError."""
        used = ", ".join(f"{self.name}/{name}" for name in names)
        keys = [name for name in self.key_variables if name not in _NO_KEYS]
        found, problems = None, variable_problems()
        problems += [
            f"{ANY}/{name} lacks a provider: {ANY}/PROVIDER/NAME, with the names that LiteLLM gives them"
            for name in names
            if self.name == ANY and "/" not in name
        ]
        try:
            found = find_key(keys, ask_keyring=not self.key_optional)
            if found is None and keys and not self.key_optional:
                problems.append(f"{' or '.join(keys)} is not set; {used} needs it: export it")
        except PreflightError as error:
            problems += error.problems
        if problems:
            raise PreflightError(problems)
        return found


_AWS = ("AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_BEARER_TOKEN_BEDROCK")
_NO_KEYS = {"AWS_PROFILE"}
"""A variable with a name."""

PROVIDERS: Mapping[str, LiteLLMProvider] = {
    provider.name: provider
    for provider in (
        LiteLLMProvider("ai21", ("AI21_API_KEY",)),
        LiteLLMProvider("cloudflare", ("CLOUDFLARE_API_KEY",)),
        LiteLLMProvider("cohere", ("COHERE_API_KEY", "CO_API_KEY")),
        LiteLLMProvider("cohere_chat", ("COHERE_API_KEY", "CO_API_KEY")),
        LiteLLMProvider("databricks", ("DATABRICKS_API_KEY", "DATABRICKS_TOKEN"), key_optional=True),
        LiteLLMProvider("gigachat", key_optional=True),
        LiteLLMProvider(ANY, key_optional=True),
        LiteLLMProvider("nlp_cloud", ("NLP_CLOUD_API_KEY",)),
        LiteLLMProvider("oci", key_optional=True),
        LiteLLMProvider("predibase", ("PREDIBASE_API_KEY",)),
        LiteLLMProvider("replicate", ("REPLICATE_API_KEY", "REPLICATE_API_TOKEN")),
        LiteLLMProvider("sagemaker", _AWS, key_optional=True),
        LiteLLMProvider("sagemaker_chat", _AWS, key_optional=True),
        LiteLLMProvider("snowflake", key_optional=True),
        LiteLLMProvider("watsonx", ("WATSONX_APIKEY", "WATSONX_API_KEY", "WX_API_KEY"), key_optional=True),
    )
}


def __getattr__(name: str) -> Callable[[], LiteLLMProvider]:
    """Return what constructs the provider of that name, for the entry points."""
    if name not in PROVIDERS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return lambda: PROVIDERS[name]
