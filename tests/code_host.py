"""A stand-in for the APIs of GitHub and GitLab: comments of one pull request, and what is asked of who comments."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

import attrs

SHA = "c0ffee0123456789c0ffee0123456789c0ffee01"


@attrs.define
class CodeHost:
    """What it knows: `me` is who the token is of, empty for that of a job, and `refused` the paths it refuses."""

    url: str = ""
    me: str = ""
    permission: str = "write"
    pull: dict[str, Any] = attrs.field(factory=dict)
    refused: str = "no path"
    comments: list[dict[str, Any]] = attrs.field(factory=list)

    def of(self, who: str = "") -> list[str]:
        """The comments of who has this name; of the token's without one."""
        return [each["body"] for each in self.comments if each["user"]["login"] == (who or self.me or "a[bot]")]

    def answer(self, method: str, target: str, body: dict[str, str]) -> tuple[int, Any]:
        parts = urlsplit(target)
        path, asked = parts.path, parse_qs(parts.query)
        if self.refused in path:
            return 403, {}
        match method, path.rsplit("/", 1):
            case "GET", [_, "user"]:
                return (200, {"login": self.me, "username": self.me}) if self.me else (403, {})
            case "GET", [_, "permission"]:
                return 200, {"permission": self.permission}
            case "GET", [before, _] if before.endswith("/pulls"):
                return 200, self.pull
            case "GET", [_, "comments" | "notes"]:
                page, size = int(asked["page"][0]), int(asked["per_page"][0])
                return 200, self.comments[(page - 1) * size : page * size]
            case "POST", [_, "comments" | "notes"]:
                self.say(self.me or "a[bot]", body["body"])
                return 201, {}
            case (("PATCH" | "PUT"), [_, number]):
                self.comments[int(number)]["body"] = body["body"]
                return 200, {}
        return 404, {}

    def say(self, who: str, body: str) -> None:
        user = {"login": who, "username": who, "type": "Bot" if who.endswith("[bot]") else "User"}
        self.comments.append({"id": len(self.comments), "user": user, "author": user, "body": body})


@contextmanager
def serving(host: CodeHost) -> Iterator[CodeHost]:
    class Handler(BaseHTTPRequestHandler):
        def reply(self) -> None:
            sent = self.rfile.read(int(self.headers.get("content-length") or 0))
            status, told = host.answer(self.command, self.path, json.loads(sent or "{}"))
            body = json.dumps(told).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_PATCH = do_PUT = reply  # noqa: N815 - the names of the library

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        host.url = f"http://127.0.0.1:{server.server_port}"
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield host
        finally:
            server.shutdown()
            thread.join()


def github_job(folder: Path, host: CodeHost, event: dict[str, Any], name: str = "pull_request") -> dict[str, str]:
    """The environment of a job of GitHub, in a folder for what the runner reads."""
    (folder / "event.json").write_text(json.dumps(event), encoding="utf-8")
    return {
        "GITHUB_ACTIONS": "true",
        "GITHUB_EVENT_NAME": name,
        "GITHUB_EVENT_PATH": str(folder / "event.json"),
        "GITHUB_REPOSITORY": "ours/tarn",
        "GITHUB_SERVER_URL": "https://github.com",
        "GITHUB_API_URL": host.url,
        "GITHUB_RUN_ID": "5",
        "GITHUB_ACTOR": "ann",
        "GITHUB_TOKEN": "job-token",
        "GITHUB_OUTPUT": str(folder / "outputs.txt"),
        "GITHUB_STEP_SUMMARY": str(folder / "summary.md"),
    }


def pull_request(repository: str = "ours/tarn", sha: str = SHA) -> dict[str, Any]:
    head = {"sha": sha, "repo": {"full_name": repository, "pushed_at": "2026-11-30T10:00:00Z"}}
    return {"number": 7, "head": head, "labels": [{"name": "bug"}]}


def asked_by(who: str, body: str, at: str = "2026-11-30T10:00:01Z", issue: str = "pull_request") -> dict[str, Any]:
    comment = {"user": {"login": who}, "body": body, "created_at": at}
    return {"issue": {"number": 7, issue: {"url": "…"}}, "comment": comment}
