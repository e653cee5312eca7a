"""The clouds: where their models are, which protocols each speaks there, and how requests are written for them."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import attrs

from keval.plugin import ModelRequest, PreflightError, Wire
from keval_providers.hosted import HostedProvider
from keval_providers.keys import Key
from keval_providers.platform import Login, SignIn

_PROJECT = ("VERTEXAI_PROJECT", "GOOGLE_CLOUD_PROJECT")
_LOCATION = ("VERTEXAI_LOCATION", "GOOGLE_CLOUD_LOCATION")
_REGION = ("AWS_REGION_NAME", "AWS_REGION", "AWS_DEFAULT_REGION")
_HOSTS = {
    "global": "aiplatform.googleapis.com",
    "us": "aiplatform.us.rep.googleapis.com",
    "eu": "aiplatform.eu.rep.googleapis.com",
}
"""Those of Vertex AI's locations whose host is not called after them as a region's is."""
_ON_VERTEX: Mapping[str, Mapping[Wire, str]] = {
    "claude": {"anthropic": "/v1{}"},
    "gemini": {"gemini": "/v1beta1{}", "openai-chat": "/v1{}/endpoints/openapi"},
    "gpt-": {"openai-responses": "/v1{}/publishers/openai/v1"},
    "": {"openai-chat": "/v1{}/endpoints/openapi"},
}
"""What the models of Vertex AI speak, by the beginnings of their names, and the path below which, with a location."""
_FIRST_ON_VERTEX = "vertex-2023-10-16"
"""The first version of Anthropic's API there; later ones have one name everywhere."""


def _first(variables: tuple[str, ...]) -> str | None:
    return next((os.environ[name] for name in variables if os.environ.get(name)), None)


def aws_region() -> str | None:
    """Return the region that the environment names."""
    return _first(_REGION)


class VertexProvider(HostedProvider):
    """Google's Vertex AI: the models of Google, of Anthropic, and of others, in a project and at a location."""

    @property
    def urls(self) -> dict[Wire, str]:
        """The URL of the location, for every protocol."""
        location = _first(_LOCATION) or "global"
        url = _first(self.url_variables) or f"https://{_HOSTS.get(location, f'{location}-aiplatform.googleapis.com')}"
        return dict.fromkeys(self.wires, url.rstrip("/").removesuffix(self.ending))

    @classmethod
    def wires_of(cls, name: str) -> Mapping[Wire, str]:
        """Return what its family speaks."""
        return next(wires for family, wires in _ON_VERTEX.items() if name.startswith(family))

    def urls_of(self, name: str, login: Login) -> dict[Wire, str]:
        """Return the base URL of each protocol that a model speaks."""
        where = f"/projects/{login.place}/locations/{_first(_LOCATION) or 'global'}"
        return {wire: f"{self.urls[wire]}{path.format(where)}" for wire, path in self.wires_of(name).items()}

    async def login(self, used: str) -> Login:
        """Return the way of signing in, with the project. Raises PreflightError."""
        login = await super().login(used)
        project = _first(_PROJECT) or login.place
        if project is None:
            told = f"{' or '.join(_PROJECT)} is not set, and the credentials name no project"
            raise PreflightError(f"{told}; {used} needs it: export it")
        return attrs.evolve(
            login, place=project, platform=attrs.evolve(login.platform or SignIn(), adapter=_for_vertex)
        )


def _for_vertex(request: ModelRequest) -> ModelRequest:
    """Return a request as Vertex AI takes it: the model is named in the path, or with its publisher."""
    if request.wire == "gemini":
        return attrs.evolve(request, path=re.sub("^/v1[^/]*/", "/publishers/google/", request.path))
    if request.wire == "openai-responses":
        return request
    body: dict[str, Any] = json.loads(request.body)
    path = request.path
    if request.wire == "anthropic":
        name = quote(body.pop("model"), safe="@:")
        path = f"/publishers/anthropic/models/{name}:{'streamRawPredict' if body.get('stream') else 'rawPredict'}"
        version = request.headers.get("anthropic-version", "")
        body.setdefault("anthropic_version", version if version > "2023-10" else _FIRST_ON_VERTEX)
    elif "/" not in body["model"]:
        body["model"] = f"google/{body['model']}"
    return attrs.evolve(request, path=path, body=json.dumps(body).encode())


class _ByFamily(HostedProvider):
    """A cloud where Claude speaks Anthropic's protocol alone, and other models speak OpenAI's."""

    @classmethod
    def wires_of(cls, name: str) -> Mapping[Wire, str]:
        """Return the protocol of Claude, or those of other models."""
        return {wire: path for wire, path in cls.wires.items() if (wire == "anthropic") == ("claude" in name)}

    def urls_of(self, name: str, login: Login) -> dict[Wire, str]:
        """Return the base URL of each protocol that a model speaks."""
        return {wire: self.urls[wire].replace("{region}", login.place or "") for wire in self.wires_of(name)}


class BedrockProvider(_ByFamily):
    """Amazon Bedrock, at the endpoint that speaks the protocols of OpenAI and of Anthropic."""

    async def login(self, used: str) -> Login:
        """Return the way of signing in, with the region. Raises PreflightError."""
        login = await super().login(used)
        region = login.place or aws_region()
        if region is None:
            told = f"{', '.join(_REGION[:-1])} or {_REGION[-1]} is not set, and no profile names a region"
            raise PreflightError(f"{told}; {used} needs it: export it")
        return attrs.evolve(login, place=region)


class FoundryProvider(_ByFamily):
    """Azure AI Foundry: the models of OpenAI, of Anthropic, and of others, in a resource."""

    @classmethod
    def wires_of(cls, name: str) -> Mapping[Wire, str]:
        """Return the protocol of Claude, or all, as the name of a deployment may be any."""
        return super().wires_of(name) if "claude" in name else cls.wires

    @property
    def urls(self) -> dict[Wire, str]:
        """The base URL of each protocol, of whose endings the user may have written one."""
        resource = os.environ.get("ANTHROPIC_FOUNDRY_RESOURCE")
        url = _first(self.url_variables) or (resource and f"https://{resource}.services.ai.azure.com")
        root = re.sub("/(anthropic|models|openai/v1)$", "", url.rstrip("/")) if url else None
        return {wire: f"{root}{path}" for wire, path in self.wires.items()} if root else {}

    def with_key(self, key: Key) -> Login:
        """Return how one is signed in by a key, which each protocol has in another header, or by a token."""
        if key.variable in self.token_variables:
            return super().with_key(key)
        headers = dict.fromkeys(("api-key", "x-api-key"), key.value)
        return Login(f"the key in {key.where}", platform=SignIn(headers, secrets=((key.where, key.value),)))
