"""Every way of signing in to a cloud, against stand-ins: tokens are renewed during a run, and none is left anywhere."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from hashlib import sha1
from types import SimpleNamespace
from urllib.parse import unquote

import attrs
import pytest

from keval_gateway import ChatReply, ChatRequest
from tests.canaries import forms, leaks
from tests.clouds import SECRETS, Cloud, google_user
from tests.conftest import Project
from tests.end_to_end.servers.model import served
from tests.printed import printed

VERTEX = {"VERTEXAI_API_BASE": "{}", "VERTEXAI_PROJECT": "my-project", "VERTEXAI_LOCATION": "europe-west1"}
BEDROCK = {
    "AWS_BEDROCK_BASE_URL": "{}",
    "AWS_ENDPOINT_URL_STS": "{}",
    "AWS_ENDPOINT_URL_SSO": "{}",
    "AWS_REGION": "eu-west-1",
    "AWS_CONFIG_FILE": "aws.ini",
    "AWS_EC2_METADATA_DISABLED": "true",
}
GITHUB = {
    "ACTIONS_ID_TOKEN_REQUEST_URL": "{}/github?api-version=2.0",
    "ACTIONS_ID_TOKEN_REQUEST_TOKEN": SECRETS["ACTIONS_ID_TOKEN_REQUEST_TOKEN"],
}
POOL = "projects/1/locations/global/workloadIdentityPools/mine/providers/github"
PROFILES = f"""
[profile keys]
aws_access_key_id = AKIAOFTHESTANDIN
aws_secret_access_key = {SECRETS["AWS_SECRET_ACCESS_KEY"]}
[profile role]
source_profile = keys
role_arn = arn:aws:iam::123456789012:role/evals
[profile sso]
sso_start_url = https://mine.awsapps.com/start
sso_region = eu-west-1
sso_account_id = 123456789012
sso_role_name = evals
"""


@attrs.frozen
class Case:
    """`how` is what `keval models` says; `audiences` are those of GitHub's tokens; `renewed`, that tokens were."""

    agent: str
    model: str
    environ: Mapping[str, str]
    how: str
    audience: str | None = None
    renewed: bool = True

    @property
    def secrets(self) -> Mapping[str, str]:
        """What this way sends to get a token, or signs with."""
        if self.audience:
            return {"request": GITHUB["ACTIONS_ID_TOKEN_REQUEST_TOKEN"]}
        if "GOOGLE_APPLICATION_CREDENTIALS" in self.environ:
            return {name: SECRETS[name] for name in ("GOOGLE_REFRESH", "GOOGLE_CLIENT")}
        return {} if self.renewed else {"key": SECRETS["AWS_SECRET_ACCESS_KEY"]}


CASES = {
    "vertex": Case(
        "openai", "vertex_ai/gemini-2.5-flash",
        {**VERTEX, **GITHUB, "GOOGLE_WORKLOAD_IDENTITY_PROVIDER": POOL, "GOOGLE_APPLICATION_CREDENTIALS": "adc.json"},
        "Google's application default credentials",
    ),
    "vertex, Gemini's API": Case(
        "gadk", "vertex_ai/gemini-2.5-flash", {**VERTEX, "GOOGLE_APPLICATION_CREDENTIALS": "adc.json"},
        "Google's application default credentials",
    ),
    "vertex by GitHub": Case(
        "anthropic", "vertex_ai/claude-sonnet-5-5",
        {**VERTEX, **GITHUB, "GOOGLE_WORKLOAD_IDENTITY_PROVIDER": POOL, "GOOGLE_SERVICE_ACCOUNT": "evals@my-project"},
        "GitHub's identity, by Google's workload identity federation", f"https://iam.googleapis.com/{POOL}",
    ),
    "bedrock by keys": Case(
        "openai", "bedrock/openai.gpt-oss-120b",
        {**BEDROCK, **GITHUB, "AWS_ROLE_ARN": "arn:aws:iam::123456789012:role/evals", "AWS_PROFILE": "keys"},
        "AWS's credentials (config-file)", renewed=False,
    ),
    "bedrock by a role": Case(
        "anthropic", "bedrock/anthropic.claude-sonnet-5-5", {**BEDROCK, "AWS_PROFILE": "role"},
        "AWS's credentials (assume-role)",
    ),
    "bedrock by SSO": Case(
        "openai", "bedrock/openai.gpt-oss-120b", {**BEDROCK, "AWS_PROFILE": "sso"}, "AWS's credentials (sso)",
    ),
    "bedrock by GitHub": Case(
        "openai", "bedrock/openai.gpt-oss-120b",
        {**BEDROCK, **GITHUB, "AWS_ROLE_ARN": "arn:aws:iam::123456789012:role/evals"},
        "GitHub's identity, by the role in AWS_ROLE_ARN", "sts.amazonaws.com",
    ),
    "openai by GitHub": Case(
        "openai", "openai/gpt-5.5",
        {"OPENAI_BASE_URL": "{}/v1", **GITHUB, "OPENAI_IDENTITY_PROVIDER_ID": "idp", "OPENAI_SERVICE_ACCOUNT_ID": "sa"},
        "GitHub's identity, by OpenAI's workload identity federation", "https://api.openai.com/v1", renewed=False,
    ),
    "anthropic by GitHub": Case(
        "anthropic", "anthropic/claude-sonnet-5-5",
        {"ANTHROPIC_BASE_URL": "{}", **GITHUB, "ANTHROPIC_FEDERATION_RULE_ID": "a", "ANTHROPIC_ORGANIZATION_ID": "b"},
        "GitHub's identity, by Anthropic's workload identity federation", "https://api.anthropic.com",
    ),
}  # fmt: skip


def prepared(project: Project, case: Case, base: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write the user's files and set the variables; the addresses that cannot be set are the stand-in's."""
    config = {
        "dataset": {"path": "questions.jsonl"},
        "agents": {"it": {"type": case.agent, "model": case.model}},
        "metrics": ["basic/latency"],
        "execution": {"max_concurrent": 1},
    }
    questions = "".join(json.dumps({"id": name, "question": "How?", "answer": "So."}) + "\n" for name in "ab")
    project.write(eval_yaml=json.dumps(config), questions_jsonl=questions, aws_ini=PROFILES)
    google_user(project.root)
    cached = project.root / f"{sha1(b'https://mine.awsapps.com/start', usedforsecurity=False).hexdigest()}.json"
    end = (datetime.now(UTC) + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    cached.write_text(json.dumps({"accessToken": SECRETS["SSO"], "expiresAt": end}), encoding="utf-8")
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    for name, value in case.environ.items():
        monkeypatch.setenv(name, value.format(base))
    monkeypatch.setattr("botocore.credentials.SSOProvider._SSO_TOKEN_CACHE_DIR", str(project.root))
    monkeypatch.setattr("google.oauth2.credentials._GOOGLE_OAUTH2_TOKEN_ENDPOINT", f"{base}/google/token")
    monkeypatch.setattr("keval_providers.google._EXCHANGE", f"{base}/google/token")
    monkeypatch.setattr("keval_providers.google._IMPERSONATE", f"{base}/google/accounts/{{}}:generateAccessToken")
    exchange = "openai.auth.WorkloadIdentityAuth.__init__.__kwdefaults__"
    monkeypatch.setattr(exchange, {"token_exchange_url": f"{base}/oauth/token", "_use_httpx2": True})


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_run_is_signed_in_and_leaves_no_token(project: Project, case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    def tells(request: ChatRequest) -> ChatReply:
        secrets = [*case.secrets.values(), *cloud.issued[before:]]
        return ChatReply("".join(f"{form}\n" for secret in secrets for form in forms(secret).values()))

    cloud, before = Cloud(tells), 0
    with served(cloud.app()) as base:
        prepared(project, case, base, monkeypatch)
        given = [path.name for path in project.root.iterdir()]
        monkeypatch.setattr("keval_providers.tokens.time", SimpleNamespace(time=cloud.time))
        looked = printed("models", case.model)
        before = len(cloud.issued)
        code, said = printed("run", "eval.yaml", "--record")
        after = [printed(*args) for args in (("show", "latest", "--json"), ("export", "latest", "--format", "otlp"))]

    for name in case.environ:
        monkeypatch.delenv(name)
    replayed = printed("run", "--replay", "latest")  # by nothing that signs in

    assert (0, 0, 0) == (looked[0], code, replayed[0]), said + replayed[1]
    assert f"by {case.how}" in looked[1]
    used = {sent.headers.get("x-amz-security-token", sent.headers["authorization"]) for sent in cloud.sent}
    assert (2 if case.renewed else 1) <= len(used) <= len(cloud.sent)
    audiences = {sent.target.partition("audience=")[2] for sent in cloud.asked if sent.target.startswith("/github")}
    assert ({case.audience} if case.audience else set()) == {*map(unquote, audiences)}
    secrets = {**case.secrets, **{f"token {index}": token for index, token in enumerate(cloud.issued)}}
    assert [] == leaks(secrets, [said, *(text for _, text in (looked, *after, replayed))], project.root, given)


@pytest.mark.parametrize("case", [case for case in CASES.values() if case.renewed], ids=lambda case: case.how)
def test_a_refused_sign_in_ends_a_run_before_it_begins_and_tells_no_secret(
    project: Project, case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    cloud = Cloud(lambda request: ChatReply("So."), refuses=True)
    with served(cloud.app()) as base:
        prepared(project, case, base, monkeypatch)
        given = [path.name for path in project.root.iterdir()]
        code, said = printed("run", "eval.yaml")

    assert (2, True, []) == (code, "no token to sign in with: " in said, cloud.sent), said
    assert [] == leaks(SECRETS, [said], project.root, given)
