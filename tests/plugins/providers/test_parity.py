"""What keval sends to clouds, beside what the vendors' own classes for them send.

keval does not use these classes: it asks every model by the vendor's plain protocol and signs the request in below its
middleware, at the moment at which it is sent (`keval.records.models.Platform`). So what a run records and plays is the
same whatever a model is signed in to by, no recording has a token, and no token ends while a request waits for its
turn. It may do so because both send the same: that is what is shown here.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from contextlib import aclosing
from pathlib import Path
from typing import Any

import attrs
import pytest
from anthropic import (
    AsyncAnthropic,
    AsyncAnthropicBedrockMantle,
    AsyncAnthropicFoundry,
    AsyncAnthropicVertex,
    StaticToken,
)
from google.genai import Client as Gemini
from google.genai.types import HttpOptions
from google.oauth2.credentials import Credentials
from openai import AsyncAzureOpenAI, AsyncOpenAI
from openai.providers import bedrock, vertex

from keval.plugin import ModelRequest, Wire
from keval_clients import anthropic_client, openai_client
from keval_clients.sender import Sender
from keval_gateway import ChatReply
from keval_providers import PROVIDERS
from tests.clouds import SECRETS, Cloud, Sent, google_user, signature_problem
from tests.end_to_end.servers.model import served

KEY = "a-key-of-mine"
AWS = {"AWS_ACCESS_KEY_ID": "AKIAOFTHESTANDIN", "AWS_SECRET_ACCESS_KEY": SECRETS["AWS_SECRET_ACCESS_KEY"]}
GEMINI = "/v1beta/models/gemini-2.5-flash:generateContent"
MESSAGES = [{"role": "user", "content": "Wie heißt der Fluß?"}]
BODIES: Mapping[str, Mapping[str, Any]] = {
    "/chat/completions": {"messages": MESSAGES, "seed": 1},
    "/responses": {"input": MESSAGES, "store": False},
    "/v1/messages": {"messages": MESSAGES, "max_tokens": 100},
    GEMINI: {"contents": [{"role": "user", "parts": [{"text": "Wie heißt der Fluß?"}]}]},
}


@attrs.frozen
class Case:
    """`theirs` makes the vendor's client for a base URL and a token; both ask at `path`, signed by headers."""

    model: str
    path: str
    environ: Mapping[str, str]
    theirs: Callable[[str, str], Any]
    signed: tuple[str, ...] = ("authorization",)
    streams: bool = False


VERTEX = {"VERTEXAI_API_BASE": "{}", "VERTEXAI_PROJECT": "my-project", "VERTEXAI_LOCATION": "eu"}
BEDROCK = {"AWS_BEDROCK_BASE_URL": "{}", "AWS_REGION": "eu-west-1"}
MANTLE: dict[str, Any] = {"aws_region": "eu-west-1"}
MINE: dict[str, Any] = {"aws_access_key": AWS["AWS_ACCESS_KEY_ID"], "aws_secret_key": AWS["AWS_SECRET_ACCESS_KEY"]}


def on_vertex(base: str, token: str) -> AsyncAnthropicVertex:
    return AsyncAnthropicVertex(project_id="my-project", region="eu", access_token=token, base_url=f"{base}/v1")


CASES = {
    "azure, by its version": Case(
        "azure/my deployment",
        "/chat/completions",
        {"AZURE_API_BASE": "{}", "AZURE_API_KEY": KEY, "AZURE_API_VERSION": "2024-10-21"},
        lambda base, token: AsyncAzureOpenAI(azure_endpoint=base, api_key=KEY, api_version="2024-10-21"),
        ("api-key",),
    ),
    "azure, by a token": Case(
        "azure/my-deployment",
        "/responses",
        {"AZURE_API_BASE": "{}", "AZURE_AD_TOKEN": KEY},
        lambda base, token: AsyncOpenAI(base_url=f"{base}/openai/v1", api_key=KEY),
    ),
    "foundry": Case(
        "azure_ai/claude-sonnet-5-5",
        "/v1/messages",
        {"AZURE_AI_API_BASE": "{}", "AZURE_AI_API_KEY": KEY},
        lambda base, token: AsyncAnthropicFoundry(base_url=f"{base}/anthropic", api_key=KEY),
        ("api-key", "x-api-key"),
    ),
    "foundry, by a token": Case(
        "azure_ai/claude-sonnet-5-5",
        "/v1/messages",
        {"AZURE_AI_API_BASE": "{}/anthropic/", "AZURE_AD_TOKEN": KEY},
        lambda base, token: AsyncAnthropicFoundry(base_url=f"{base}/anthropic", azure_ad_token_provider=lambda: KEY),
    ),
    "vertex": Case("vertex_ai/claude-sonnet-5-5@20250929", "/v1/messages", VERTEX, on_vertex),
    "vertex, streaming": Case("vertex_ai/claude-sonnet-5-5", "/v1/messages", VERTEX, on_vertex, streams=True),
    "vertex, Gemini": Case(
        "vertex_ai/gemini-2.5-flash",
        GEMINI,
        VERTEX,
        lambda base, token: (
            Gemini(
                enterprise=True,
                project="my-project",
                location="eu",
                credentials=Credentials(token),  # type: ignore[no-untyped-call]  # of google-auth
                http_options=HttpOptions(base_url=base),
            ).aio
        ),
    ),
    "vertex, by OpenAI": Case(
        "vertex_ai/gpt-5.5",
        "/responses",
        VERTEX,
        lambda base, token: AsyncOpenAI(
            provider=vertex(
                base_url=f"{base}/v1/projects/my-project/locations/eu/publishers/openai/v1",
                token_provider=lambda: token,
            )
        ),
    ),
    "anthropic, by GitHub": Case(
        "anthropic/claude-sonnet-5-5",
        "/v1/messages",
        {
            "ANTHROPIC_BASE_URL": "{}",
            "ANTHROPIC_FEDERATION_RULE_ID": "rule",
            "ANTHROPIC_ORGANIZATION_ID": "org",
            "ACTIONS_ID_TOKEN_REQUEST_URL": "{}/github?api-version=2.0",
            "ACTIONS_ID_TOKEN_REQUEST_TOKEN": SECRETS["ACTIONS_ID_TOKEN_REQUEST_TOKEN"],
        },
        lambda base, token: AsyncAnthropic(base_url=base, credentials=StaticToken(token)),
        ("authorization", "anthropic-beta"),
    ),
    "bedrock": Case(
        "bedrock/anthropic.claude-sonnet-5-5",
        "/v1/messages",
        {**BEDROCK, **AWS},
        lambda base, token: AsyncAnthropicBedrockMantle(base_url=f"{base}/anthropic", **MANTLE, **MINE),
    ),
    "bedrock, in a session": Case(
        "bedrock/openai.gpt-oss-120b",
        "/responses",
        {**BEDROCK, **AWS, "AWS_SESSION_TOKEN": "a-session"},
        lambda base, token: AsyncOpenAI(
            provider=bedrock(
                base_url=f"{base}/openai/v1",
                region="eu-west-1",
                access_key_id=AWS["AWS_ACCESS_KEY_ID"],
                secret_access_key=AWS["AWS_SECRET_ACCESS_KEY"],
                session_token="a-session",
            )
        ),
        ("authorization", "x-amz-content-sha256", "x-amz-date", "x-amz-security-token"),
    ),
    "bedrock, by a key": Case(
        "bedrock/anthropic.claude-sonnet-5-5",
        "/v1/messages",
        {**BEDROCK, "AWS_BEARER_TOKEN_BEDROCK": KEY},
        lambda base, token: AsyncAnthropicBedrockMantle(base_url=f"{base}/anthropic", api_key=KEY, **MANTLE),
    ),
    "bedrock, by a key and OpenAI": Case(
        "bedrock/openai.gpt-oss-120b",
        "/chat/completions",
        {**BEDROCK, "AWS_BEARER_TOKEN_BEDROCK": KEY},
        lambda base, token: AsyncOpenAI(provider=bedrock(base_url=f"{base}/openai/v1", api_key=KEY)),
    ),
}


WIRES: Mapping[str, tuple[Wire, Callable[[Any], Callable[..., Awaitable[Any]]]]] = {
    "/v1/messages": ("anthropic", lambda client: client.messages.create),
    "/responses": ("openai-responses", lambda client: client.responses.create),
    "/chat/completions": ("openai-chat", lambda client: client.chat.completions.create),
    GEMINI: ("gemini", lambda client: client.models.generate_content),
}


async def both(case: Case, base: str, cloud: Cloud) -> None:
    """Ask by keval, and then by the vendor's client."""
    vendor, _, name = case.model.partition("/")
    body = {**BODIES[case.path], "model": name, **({"stream": True} if case.streams else {})}
    wire, create = WIRES[case.path]
    async with PROVIDERS[vendor]().open([name], 0) as endpoints:
        endpoint, url = endpoints[name], endpoints[name].urls[wire]
        if wire == "gemini":  # which keval's proxy passes on, from gadk and from programs
            ours: Any = Sender.to(url, endpoint)
        else:
            ours = (anthropic_client if wire == "anthropic" else openai_client)(url, endpoint)
        async with aclosing(ours):
            if wire == "gemini":
                content, of_json = json.dumps(BODIES[GEMINI]).encode(), {"content-type": "application/json"}
                await ours.send(ModelRequest(name, wire, "POST", case.path, of_json, content))
            elif case.streams:
                await ours.stream(case.path, body, {}, lambda content: None, last)
            else:
                await ours.post(case.path, body, {})
    async with case.theirs(base, cloud.issued[-1] if cloud.issued else "") as theirs:
        reply = await create(theirs)(**body)
        if case.streams:
            await reply.close()


async def last(events: AsyncGenerator[dict[str, Any], None]) -> dict[str, Any]:
    return [event async for event in events][-1]


def signature(sent: Sent, names: Iterable[str]) -> list[str]:
    """Return what signs a request in, without what changes from one signature to the next."""
    changing = r"(?<=/)\d{8}(?=/)|(?<=SignedHeaders=)[^,]+|(?<=Signature=)\w+|^\d{8}T\d{6}Z$|^[0-9a-f]{64}$"
    return [re.sub(changing, "…", sent.headers[name]) for name in names]


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_keval_sends_what_the_vendors_class_sends(case: Case, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cloud = Cloud(lambda request: ChatReply("So."), key=KEY)
    with served(cloud.app()) as base:
        monkeypatch.setattr("google.oauth2.credentials._GOOGLE_OAUTH2_TOKEN_ENDPOINT", f"{base}/google/token")
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", google_user(tmp_path))
        for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
            monkeypatch.delenv(name, raising=False)
        for name, value in case.environ.items():
            monkeypatch.setenv(name, value.format(base))
        asyncio.run(both(case, base, cloud))

    ours, theirs = cloud.sent
    assert (theirs.method, theirs.target, theirs.content) == (ours.method, ours.target, ours.content)
    assert signature(theirs, case.signed) == signature(ours, case.signed)
    if "AWS_SECRET_ACCESS_KEY" in case.environ:
        session = case.environ.get("AWS_SESSION_TOKEN")
        secret = case.environ["AWS_SECRET_ACCESS_KEY"]
        problems = [signature_problem(sent, secret, "bedrock-mantle", session) for sent in cloud.sent]
        assert [None, None] == problems
        (signed,) = re.findall("SignedHeaders=([^,]+)", ours.headers["authorization"])
        assert {"content-type", "host", "x-amz-content-sha256", "x-amz-date"} <= {*signed.split(";")}
