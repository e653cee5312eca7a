"""Servers behind a login in a config: mistakes have their place, and a token that keval obtained is left nowhere."""

from __future__ import annotations

import ssl
from collections.abc import Iterator

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from keval_gateway import ChatCall, ChatReply, ChatRequest
from tests.certificates import Authority
from tests.conftest import Project
from tests.end_to_end.servers.model import gateway
from tests.processes import Listening

CONFIG = """
dataset: {path: questions.jsonl}
agents: {openai: {model: openai/gpt-test}}
contexts:
  by_secret: {type: http, url: "URL/mcp", auth: {client_id: keval, client_secret: "${PASSED}", issuer: "URL"}}
  by_key:
    type: http
    url: URL/mcp
    auth: {client_id: signer, private_key_file: key.pem, algorithm: ES256, issuer: "URL"}
conditions:
  by_secret: {contexts: [by_secret]}
  by_key: {contexts: [by_key]}
metrics: [basic/no_tool_errors]
"""


@pytest.fixture
def key() -> tuple[str, str]:
    """A private and a public key."""
    private, encoding = ec.generate_private_key(ec.SECP256R1()), serialization.Encoding.PEM
    secret = private.private_bytes(encoding, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    public = private.public_key().public_bytes(encoding, serialization.PublicFormat.SubjectPublicKeyInfo)
    return secret.decode(), public.decode()


@pytest.fixture
def guarded(key: tuple[str, str]) -> Iterator[str]:
    """The URL of a server behind a login."""
    process = Listening.start("tests.plugins.mcp.servers.guarded", "http", key[1])
    yield f"http://127.0.0.1:{process.port}"
    process.stop()


def tells_who(request: ChatRequest) -> ChatReply:
    """Call the tool `whoami`, and repeat the token that it tells."""
    last = request.messages[-1]
    return ChatReply(last.text) if last.role == "tool" else ChatReply(calls=(ChatCall("whoami"),))


def test_token_that_keval_obtained_is_left_nowhere(project: Project, guarded: str, key: tuple[str, str]) -> None:
    project.write(
        eval_yaml=CONFIG.replace("URL", guarded), questions_jsonl='{"id": "q", "question": "Who?"}\n', key_pem=key[0]
    )

    with gateway(tells_who) as environ:
        outcome = project.keval("run", "eval.yaml", env={**environ, "PASSED": "s3cret-of-keval"})

    assert 0 == outcome.code, outcome.stderr
    told = {line["condition"]: line["transcript"]["tool_calls"][0]["result"] for line in project.lines("trials.jsonl")}
    assert {"by_secret": "keval has [secret]", "by_key": "signer has [secret]"} == told


BY_CERTIFICATE = """
dataset: {path: questions.jsonl}
agents: {openai: {model: openai/gpt-test}}
contexts:
  private:
    type: http
    url: URL/mcp
    verify: company
    cert: company/client.pem
    cert_key: company/KEY.key
    cert_password: "${PASS_PHRASE}"
    auth: {client_id: keval, client_secret: "${PASSED}", issuer: "URL"}
conditions: {private: {contexts: [private]}}
metrics: [basic/no_tool_errors]
"""


def test_server_of_a_private_authority_is_reached_by_files_beside_the_config(project: Project) -> None:
    folder = project.root / "company"
    folder.mkdir()
    authority = Authority(folder)
    certificate, key = authority.issue("server")
    authority.issue("client", "pass-phrase")
    tls = {"ssl_certfile": str(certificate), "ssl_keyfile": str(key), "ssl_ca_certs": str(authority.certificate)}
    process = Listening.start(
        "tests.plugins.mcp.servers.guarded", "http", "", {**tls, "ssl_cert_reqs": ssl.CERT_REQUIRED}
    )
    config = BY_CERTIFICATE.replace("URL", f"https://127.0.0.1:{process.port}")
    project.write(
        eval_yaml=config.replace("KEY", "client"),
        wrong_yaml=config.replace("KEY", "server"),
        questions_jsonl='{"id": "q", "question": "Who?"}\n',
    )

    with gateway(tells_who) as served:
        environ = {**served, "PASSED": "s3cret-of-keval", "PASS_PHRASE": "pass-phrase"}
        outcome = project.keval("run", "eval.yaml", env=environ)
        wrong = project.keval("run", "wrong.yaml", env=environ)
    process.stop()

    assert 0 == outcome.code, outcome.stderr
    (trial,) = project.lines("trials.jsonl")
    assert "keval has [secret]" == trial["transcript"]["tool_calls"][0]["result"]
    written = [file.read_text("utf-8", "replace") for file in (project.root / "results").rglob("*") if file.is_file()]
    assert not any("pass-phrase" in text for text in written)
    assert "wrong.yaml:4:3: server 'private': 'cert' and its key cannot be used: '" in wrong.stderr
    assert "server.key' is not the key of '" in wrong.stderr
