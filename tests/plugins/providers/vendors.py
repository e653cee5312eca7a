"""Vertex AI and Bedrock on loopback: their addresses, credentials and forms, with keval's own gateway behind them."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote
from zlib import crc32

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key
from google.auth import jwt
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from keval_gateway import Respond
from tests.clouds import Sent, asking, signature_problem

__all__ = ["AWS", "TOKEN", "bedrock", "service_account", "vertex_ai"]

TOKEN = "ya29.a-token-of-the-stand-in"
PROJECT = "/v1/projects/my-project/locations/europe-west1/publishers"
AWS = {
    "AWS_ACCESS_KEY_ID": "AKIAOFTHESTANDIN",
    "AWS_SECRET_ACCESS_KEY": "a-secret-of-the-stand-in",
    "AWS_REGION_NAME": "eu-central-1",
}


def service_account(folder: Path, key: RSAPrivateKey, base: str) -> str:
    """Write the file of a service account whose tokens come from the stand-in, and return its path."""
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
    account = {
        "type": "service_account",
        "project_id": "my-project",
        "private_key_id": "1",
        "private_key": pem,
        "client_email": "tester@my-project.iam.gserviceaccount.com",
        "client_id": "1",
        "token_uri": f"{base}/token",
    }
    path = folder / "service-account.json"
    path.write_text(json.dumps(account), encoding="utf-8")
    return str(path)


def private_key() -> RSAPrivateKey:
    return generate_private_key(public_exponent=65537, key_size=2048)


def vertex_ai(respond: Respond, key: RSAPrivateKey) -> Starlette:
    """Google's token endpoint and Vertex AI, with the models of Google and of Anthropic."""
    public = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    ask = asking(respond)

    async def token(request: Request) -> Response:
        (assertion,) = parse_qs((await request.body()).decode())["assertion"]
        claims = jwt.decode(  # type: ignore[no-untyped-call]  # of google-auth
            assertion, certs=public.decode(), audience="https://oauth2.googleapis.com/token"
        )
        assert "tester@my-project.iam.gserviceaccount.com" == claims["iss"]
        return _json({"access_token": TOKEN, "expires_in": 3600, "token_type": "Bearer"})

    async def model(request: Request) -> Response:
        if request.headers.get("authorization") != f"Bearer {TOKEN}":
            return _json({"error": {"code": 401, "message": "no token of this stand-in"}}, 401)
        name, _, method = request.path_params["call"].partition(":")
        body = json.loads(await request.body())
        if request.path_params["publisher"] == "google":
            query = f"?{request.url.query}" if request.url.query else ""
            return await ask(f"/gemini/v1/models/{name}:{method}{query}", _camel(body))
        return await ask("/anthropic/v1/messages", {**body, "model": name, "stream": method == "streamRawPredict"})

    return Starlette(
        routes=[
            Route("/token", token, methods=["POST"]),
            Route(PROJECT + "/{publisher}/models/{call:path}", model, methods=["POST"]),
        ]
    )


def bedrock(respond: Respond) -> Starlette:
    """Bedrock's runtime: Converse, and InvokeModel for the models of Anthropic. Every signature is checked."""
    ask = asking(respond)

    async def model(request: Request) -> Response:
        content = await request.body()
        sent = Sent("POST", request.scope["raw_path"].decode(), dict(request.headers), content)
        if problem := signature_problem(sent, AWS["AWS_SECRET_ACCESS_KEY"], "bedrock"):
            return _json({"message": problem}, 403)
        name, body = unquote(request.path_params["name"]), json.loads(content)
        if request.path_params["operation"] == "invoke":
            return await ask("/anthropic/v1/messages", {**body, "model": name})
        reply = await ask("/anthropic/v1/messages", _messages_of_converse(name, body))
        answer = json.loads(bytes(reply.body))
        if reply.status_code != 200:
            return _json({"message": answer["error"]["message"]}, reply.status_code, reply.headers)
        if request.path_params["operation"] == "converse-stream":
            events = b"".join(_frame(kind, event) for kind, event in _converse_events(_converse_of_message(answer)))
            return Response(events, media_type="application/vnd.amazon.eventstream")
        return _json(_converse_of_message(answer))

    return Starlette(routes=[Route("/model/{name}/{operation}", model, methods=["POST"])])


def _messages_of_converse(name: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """Translate a request of Converse into one of Anthropic's Messages API."""
    tools = [tool["toolSpec"] for tool in body.get("toolConfig", {}).get("tools", ()) if "toolSpec" in tool]
    choice = body.get("toolConfig", {}).get("toolChoice")
    form = body.get("outputConfig", {}).get("textFormat", {}).get("structure", {}).get("jsonSchema")
    return {
        "model": name,
        "max_tokens": body.get("inferenceConfig", {}).get("maxTokens", 4096),
        "system": [{"type": "text", "text": part["text"]} for part in body.get("system", ()) if "text" in part],
        "messages": [
            {"role": message["role"], "content": [*_blocks(message["content"])]} for message in body["messages"]
        ],
        **({"output_config": {"format": _format(form["schema"])}} if form else {}),
        **({"tool_choice": {"type": "tool", "name": choice["tool"]["name"]}} if choice and "tool" in choice else {}),
        "tools": [
            {
                "name": tool["name"],
                "description": tool.get("description", ""),
                "input_schema": tool["inputSchema"]["json"],
            }
            for tool in tools
        ],
    }


def _format(schema: str) -> dict[str, Any]:
    return {"type": "json_schema", "schema": json.loads(schema)}


def _blocks(content: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for block in content:
        match block:
            case {"text": text}:
                yield {"type": "text", "text": text}
            case {"toolUse": used}:
                yield {"type": "tool_use", "id": used["toolUseId"], "name": used["name"], "input": used["input"]}
            case {"toolResult": result}:
                parts = [{"type": "text", "text": part["text"]} for part in result["content"]]
                yield {"type": "tool_result", "tool_use_id": result["toolUseId"], "content": parts}
            case {"image": {"format": kind, "source": {"bytes": data}}}:
                yield {"type": "image", "source": {"type": "base64", "media_type": f"image/{kind}", "data": data}}


def _converse_of_message(message: Mapping[str, Any]) -> dict[str, Any]:
    content = [
        {"text": block["text"]}
        if block["type"] == "text"
        else {"toolUse": {"toolUseId": block["id"], "name": block["name"], "input": block["input"]}}
        for block in message["content"]
    ]
    given, used = message["usage"]["input_tokens"], message["usage"]["output_tokens"]
    return {
        "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": message["stop_reason"],
        "usage": {"inputTokens": given, "outputTokens": used, "totalTokens": given + used},
        "metrics": {"latencyMs": 1},
    }


def _converse_events(reply: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    yield "messageStart", {"role": "assistant"}
    for index, block in enumerate(reply["output"]["message"]["content"]):
        yield "contentBlockDelta", {"contentBlockIndex": index, "delta": {"text": block["text"]}}
        yield "contentBlockStop", {"contentBlockIndex": index}
    yield "messageStop", {"stopReason": reply["stopReason"]}
    yield "metadata", {"usage": reply["usage"], "metrics": reply["metrics"]}


def _frame(kind: str, event: Mapping[str, Any]) -> bytes:
    """Return a message of AWS's binary encoding of event streams, with its two checksums."""
    fields = {":message-type": "event", ":event-type": kind, ":content-type": "application/json"}
    headers = b"".join(
        struct.pack("!B", len(name)) + name.encode() + struct.pack("!BH", 7, len(value)) + value.encode()
        for name, value in fields.items()
    )
    payload = json.dumps(event).encode()
    start = struct.pack("!II", 16 + len(headers) + len(payload), len(headers))
    message = start + struct.pack("!I", crc32(start)) + headers + payload
    return message + struct.pack("!I", crc32(message))


_CAMEL = {
    "function_call": "functionCall",
    "function_declarations": "functionDeclarations",
    "function_response": "functionResponse",
    "system_instruction": "systemInstruction",
    "inline_data": "inlineData",
    "mime_type": "mimeType",
    "max_output_tokens": "maxOutputTokens",
    "response_mime_type": "responseMimeType",
    "response_schema": "responseSchema",
    "response_json_schema": "responseJsonSchema",
}


def _camel(value: Any) -> Any:
    """Rename fields that LiteLLM sends in the other spelling, which Google takes as well and keval's gateway not."""
    if isinstance(value, dict):
        return {_CAMEL.get(name, name): _camel(each) for name, each in value.items()}
    return [_camel(each) for each in value] if isinstance(value, list) else value


def _json(body: Mapping[str, Any], status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    kept = {name: value for name, value in (headers or {}).items() if name == "retry-after"}
    return Response(json.dumps(body), status, kept, "application/json")
