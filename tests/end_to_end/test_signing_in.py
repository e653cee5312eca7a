"""Each way of signing in: an endpoint that takes nothing else is asked, and what signed in stands nowhere.

The endpoint tells the token in a reply and in an error; some end during the run. No real cloud is asked.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import sys
import threading
import time
import types
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import attrs
import pytest

from keval.records.trial import Sample, TrialKey
from keval.seams.live_events import LiveEvent
from keval.store.run import Run, open_run
from keval_gateway import ChatReply, ChatRequest, ModelFault
from keval_remote.crew.worker import open_worker
from tests.canaries import leaks
from tests.clouds import SECRETS, Cloud
from tests.conftest import Project
from tests.end_to_end.servers.model import gateway, served
from tests.plugins.clients.test_tls import self_signed
from tests.printed import printed

LIFE = 3600.0
SECRET = "c4n4ry~of+Entra=1"
VARIABLES = (
    *("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "AZURE_API_KEY", "AZURE_OPENAI_API_KEY", "AZURE_AD_TOKEN"),
    *("AZURE_OPENAI_AD_TOKEN", "AZURE_API_VERSION", "AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET", "AZURE_TENANT_ID"),
)


@attrs.define
class Issuer:
    """Gives tokens, of which the last one alone is good; its clock goes on by most of a token's life with each use."""

    tokens: list[str] = attrs.field(factory=lambda: [f"c4n4ry/0+~{'='}"])
    ahead: float = 0.0
    ends: bool = False

    def time(self) -> float:
        return time.time() + self.ahead

    def issue(self) -> str:
        self.tokens.append(f"c4n4ry/{len(self.tokens)}+~=")
        return self.tokens[-1]

    def used(self) -> None:
        self.ahead += LIFE * 0.95 if self.ends else 0.0


@attrs.frozen
class Way:
    """A way of signing in: the model, the environment and the options that lead to it, and what is sent then."""

    model: str
    how: str
    sent: str = "authorization: Bearer {}"
    environ: Mapping[str, str] = attrs.field(factory=dict)
    options: Mapping[str, Any] | None = None
    around: Callable[[Issuer, Path, pytest.MonkeyPatch], Any] | None = None
    ends: bool = False
    agent: str | None = None


COMMAND = """
import json, pathlib
file = pathlib.Path("tokens.txt")
number = len(file.read_text().split()) + 1 if file.exists() else 1
token = f"c4n4ry/{number}+~="
with file.open("a") as opened:
    opened.write(f"{token}\\n")
print(json.dumps({"access_token": token, "expires_in": 3600}))
"""


@contextmanager
def issued_by_command(issuer: Issuer, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    (folder / "issue.py").write_text(COMMAND, encoding="utf-8")
    monkeypatch.setattr(Issuer, "tokens", property(lambda self: (folder / "tokens.txt").read_text().split()))
    yield


@contextmanager
def a_keyring(issuer: Issuer, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Install a package `keyring`, which has one key."""
    found = {("keval", "OPENAI_API_KEY"): f"{issuer.tokens[0]}\n"}
    package, errors = types.ModuleType("keyring"), types.ModuleType("keyring.errors")
    vars(package).update(errors=errors, get_password=lambda *place: found.get(place))
    vars(errors).update(NoKeyringError=RuntimeError)
    monkeypatch.setitem(sys.modules, "keyring", package)
    monkeypatch.setitem(sys.modules, "keyring.errors", errors)
    yield


@contextmanager
def entra(issuer: Issuer, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Serve the part of Microsoft Entra ID that gives an application a token for its secret."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            place = f"https://{self.headers['host']}/mine"
            self.answer({"authorization_endpoint": f"{place}/ask", "token_endpoint": f"{place}/token", "issuer": place})

        def do_POST(self) -> None:
            form = parse_qs(self.rfile.read(int(self.headers["content-length"])).decode())
            right = ("app", "https://cognitiveservices.azure.com/.default")
            known = form.get("client_secret") == [SECRET] or form.get("client_assertion") == issuer.tokens[-1:]
            if known and right == tuple(form[name][0] for name in ("client_id", "scope")):
                self.answer(
                    {"access_token": issuer.issue(), "expires_in": int(LIFE + issuer.ahead), "token_type": "Bearer"}
                )
            else:
                self.answer({"error": "invalid_client"}, 401)

        def answer(self, body: Mapping[str, Any], status: int = 200) -> None:
            content = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *args: object) -> None:
            """Tell nobody."""

    (away := folder.with_name(f"{folder.name}-authority")).mkdir()
    certificate = self_signed(away)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, away / "key.pem")
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificate))
        monkeypatch.setenv("AZURE_AUTHORITY_HOST", f"https://127.0.0.1:{server.server_port}")
        for name, value in {"TENANT_ID": "mine", "CLIENT_ID": "app", "CLIENT_SECRET": SECRET}.items():
            monkeypatch.setenv(f"AZURE_{name}", value)
        monkeypatch.setenv("AZURE_TOKEN_CREDENTIALS", "prod")  # no programs of developers
        try:
            yield
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def entra_for_github(issuer: Issuer, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Serve what gives a job of GitHub's a token of its identity, and an authority that trusts that."""
    cloud = Cloud(lambda request: ChatReply(""))
    cloud.issued = issuer.tokens
    with served(cloud.app()) as base, entra(issuer, folder, monkeypatch):
        monkeypatch.delenv("AZURE_CLIENT_SECRET")
        monkeypatch.setenv("ACTIONS_ID_TOKEN_REQUEST_URL", f"{base}/github?api-version=2.0")
        monkeypatch.setenv("ACTIONS_ID_TOKEN_REQUEST_TOKEN", SECRETS["ACTIONS_ID_TOKEN_REQUEST_TOKEN"])
        yield


TOKEN = "c4n4ry/0+~="
WAYS = {
    "a key": Way("openai/m", "the key in OPENAI_API_KEY", environ={"OPENAI_API_KEY": f" {TOKEN}\r\n"}),
    "a key of Anthropic's": Way(
        "anthropic/m", "the key in ANTHROPIC_API_KEY", "x-api-key: {}", {"ANTHROPIC_API_KEY": TOKEN}
    ),
    "a token of Anthropic's": Way(
        "anthropic/m", "the token in ANTHROPIC_AUTH_TOKEN", environ={"ANTHROPIC_AUTH_TOKEN": TOKEN}
    ),
    "a file": Way(
        "openai/m", "the key in the file that OPENAI_API_KEY_FILE names", environ={"OPENAI_API_KEY_FILE": "key.txt"}
    ),
    "a keyring": Way("openai/m", "the key in the keyring (keval, OPENAI_API_KEY)", around=a_keyring),
    "a command": Way(
        "openai/m",
        f"the command {sys.executable}",
        options={"command": [sys.executable, "issue.py"]},
        around=issued_by_command,
        ends=True,
    ),
    "a key of Azure's": Way("azure/m", "the key in AZURE_API_KEY", "api-key: {}", {"AZURE_API_KEY": TOKEN}),
    "a token of Azure's": Way("azure/m", "the token in AZURE_AD_TOKEN", environ={"AZURE_AD_TOKEN": TOKEN}),
    "a token through the proxy": Way(
        "azure/m", "the token in AZURE_AD_TOKEN", environ={"AZURE_AD_TOKEN": TOKEN}, agent="ms"
    ),
    "a header through the proxy": Way(
        "openai/m",
        "the key in OPENAI_API_KEY",
        "x-team: {}",
        {"OPENAI_API_KEY": "key-of-nobody", "OPENAI_CUSTOM_HEADERS": f"X-Team: {TOKEN}"},
        agent="ms",
    ),
    "azure-identity": Way("azure/m", "azure-identity: EnvironmentCredential", around=entra, ends=True),
    "GitHub at Azure": Way("azure/m", "GitHub's identity, by Microsoft Entra ID", around=entra_for_github, ends=True),
}


@pytest.mark.parametrize("name", WAYS)
def test_a_way_of_signing_in_is_taken_and_its_secrets_stand_nowhere(
    project: Project, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    way = WAYS[name]
    issuer = Issuer(ends=way.ends)
    for variable in VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    for module in ("keval_providers.tokens", "keval_clients.printed_token"):
        monkeypatch.setattr(f"{module}.time", types.SimpleNamespace(time=issuer.time))

    def respond(request: ChatRequest) -> ChatReply:
        header, _, form = way.sent.partition(": ")
        sent = request.headers.get(header)
        if sent != form.format(issuer.tokens[-1]):
            raise ModelFault(401, f"Incorrect API key provided: {sent}")
        issuer.used()
        if "fail" in request.messages[-1].text:
            raise ModelFault(400, f"this is refused to {sent}")
        return ChatReply(f"It is {sent}")

    project.write(
        eval_yaml=json.dumps(
            {
                "dataset": {"path": "questions.jsonl"},
                "agents": {
                    "asked": {
                        "type": way.agent or way.model.partition("/")[0].replace("azure", "openai"),
                        "model": way.model,
                    }
                },
                "metrics": ["double/length"],
                "providers": {way.model.partition("/")[0]: way.options} if way.options else {},
                "execution": {"max_concurrent": 1, "retry": {"max_attempts": 1}},
            }
        ),
        questions_jsonl="".join(json.dumps({"id": text, "question": text}) + "\n" for text in ("say", "fail", "more")),
        key_txt=f"{TOKEN}\n",
    )
    with gateway(respond) as environ, ExitStack() as stack:
        urls = {"AZURE_API_BASE": environ["OPENAI_BASE_URL"]} | {k: v for k, v in environ.items() if "_URL" in k}
        env = {**urls, **way.environ}
        if way.around is not None:
            stack.enter_context(way.around(issuer, project.root, monkeypatch))
        looked = printed("models", way.model, "--ask", "--config", "eval.yaml", env=env)
        done = printed("run", "eval.yaml", "--record", env=env)
        shown = printed("show", "latest", "--json", env=env)

    assert (0, True) == (looked[0], f"access    by {way.how}\n" in looked[1]), looked[1]
    assert "reply     It is " in looked[1]
    assert (3, 0) == (done[0], shown[0]), done[1]
    assert (way.options or None) == project.read("manifest.json")["config"].get("providers", {}).get("openai")
    trials = {line["sample"]: line for line in project.lines("trials.jsonl")}
    assert all("[secret]" in trials[text]["output"] for text in ("say", "more"))
    assert ("http_400", True) == (trials["fail"]["failure"]["kind"], "[secret]" in trials["fail"]["failure"]["message"])
    # Once to ask a word; and for a run at first, and before each request but the first, as the token ends.
    assert not way.ends or len({token for token in issuer.tokens if token[:6] == TOKEN[:6]} - {TOKEN}) == 4
    told = [text for _, text in (looked, done, shown)]
    secrets = {f"token {number}": token for number, token in enumerate(issuer.tokens)} | {"the secret": SECRET}
    assert [] == leaks(secrets, told, project.root, ["key.txt", "tokens.txt"])


def test_a_token_that_cannot_be_renewed_ends_the_run_with_what_the_command_said(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    issuer = Issuer(ends=True)
    monkeypatch.setattr("keval_providers.tokens.time", types.SimpleNamespace(time=issuer.time))
    once = (
        "import pathlib, sys; pathlib.Path('used').exists() and sys.exit('log in anew'); pathlib.Path('used').touch()"
    )
    answer = json.dumps({"access_token": TOKEN, "expires_in": int(LIFE / 2)})
    command = [sys.executable, "-c", f"{once}; print({answer!r})"]
    config = {
        "dataset": {"path": "questions.jsonl"},
        "agents": {"openai": {"model": "openai/m"}},
        "metrics": ["double/length"],
        "providers": {"openai": {"command": command}},
        "execution": {"max_concurrent": 1},
    }
    project.write(
        eval_yaml=json.dumps(config), questions_jsonl='{"id": "1", "question": "?"}\n{"id": "2", "question": "?"}\n'
    )

    def respond(request: ChatRequest) -> ChatReply:
        issuer.used()
        return ChatReply("Yes.")

    with gateway(respond) as environ:
        code, said = printed("run", "eval.yaml", env=environ)

    assert 3 == code
    assert "refuses to answer: HTTP 401: no token to sign in with: the command " in said
    assert "it ended with code 1: log in anew; run it in a terminal to see what it says" in said


def test_a_worker_elsewhere_tells_no_token_that_it_alone_knows(project: Project) -> None:
    issue = "import os; n = len(os.listdir('.')); open(f'used-{n}', 'w').close(); print(f'c4n4ry/{n}+~=')"
    command = [sys.executable, "-c", issue]
    config = {
        "dataset": {"path": "questions.jsonl"},
        "agents": {"openai": {"model": "openai/m"}},
        "metrics": ["double/length"],
        "providers": {"openai": {"command": command}},
    }
    project.write(eval_yaml=json.dumps(config), questions_jsonl='{"id": "1", "question": "?"}\n')
    events: list[LiveEvent] = []

    async def work(run: Run) -> None:
        async with open_worker(run.manifest, sample_ids=["1"]) as worker:
            worker.listener = events.append
            await worker.run(TrialKey("openai/baseline/1/1", "openai", "baseline", "1", 1), Sample("1", "?"))

    with gateway(lambda request: ChatReply(f"It is {request.headers['authorization']}")) as environ:
        assert 0 == printed("run", "eval.yaml", env=environ)[0]
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("OPENAI_BASE_URL", environ["OPENAI_BASE_URL"])
            asyncio.run(work(open_run()))

    told = json.dumps([dict(event.data) for event in events])
    assert (True, False) == ("It is Bearer [secret]" in told, "c4n4ry" in told)
