"""The APIs of GitHub and GitLab, as far as keval talks to them: one comment of a pull request, which is updated."""

from __future__ import annotations

import os
from itertools import count
from typing import Any

import attrs
import httpx2

from keval.errors import PreflightError
from keval_clients.network import Network

_TIMEOUT = 30.0
_PAGE = 100


@attrs.frozen
class Api:
    """The API of one repository.

    `comments` are the comments of a pull request, `comment` is one of them, which `edit` changes; `author` leads to the
    name of who wrote it. `lacks` says what to do if the token may not do something.
    """

    host: str
    server: str
    repository: str
    headers: dict[str, str] = attrs.field(repr=False)
    comments: str
    comment: str
    edit: str
    author: tuple[str, str]
    lacks: str

    @classmethod
    def here(cls, host: str) -> Api:
        """Return the API of the repository that the job is of. Raises PreflightError: the environment does not tell."""
        environ = os.environ
        if host == "GitHub" and (token := environ.get("GITHUB_TOKEN")):
            at = environ.get("GITHUB_API_URL", "https://api.github.com"), f"/repos/{environ['GITHUB_REPOSITORY']}"
            ways = "/issues/{number}/comments", "/issues/comments/{id}", "PATCH"
            lacks = "give the job `permissions: pull-requests: write`"
            return cls(host, *at, {"authorization": f"Bearer {token}"}, *ways, ("user", "login"), lacks)
        if host == "GitLab" and (token := environ.get("KEVAL_GITLAB_TOKEN")):
            at = environ["CI_API_V4_URL"], f"/projects/{environ['CI_PROJECT_ID']}"
            notes = "/merge_requests/{number}/notes"
            lacks = "give KEVAL_GITLAB_TOKEN the scope `api` and the role Developer"
            return cls(
                host, *at, {"private-token": token}, notes, f"{notes}/{{id}}", "PUT", ("author", "username"), lacks
            )
        lacking = {"GitHub": "set GITHUB_TOKEN to ${{ github.token }}", "GitLab": "set KEVAL_GITLAB_TOKEN"}
        raise PreflightError(f"keval has no token; {lacking[host]}" if host else "this is no job of GitHub or GitLab")

    def say(self, number: int, mark: str, text: str) -> str:
        """Write a comment that begins with a mark, or write it anew where it is there already; return what was done.

        Raises PreflightError.
        """
        body, me = {"body": f"{mark}\n{text}"}, self._me()
        for page in count(1):
            found = self.ask("GET", f"{self.comments.format(number=number)}?per_page={_PAGE}&page={page}")
            for each in found:
                who, name = self.author
                # Somebody else could write the mark, and would then hold what keval says in their own comment.
                mine = each[who][name] == me if me else each[who].get("type") == "Bot"
                if mine and str(each["body"]).startswith(mark):
                    self.ask(self.edit, self.comment.format(number=number, id=each["id"]), body)
                    return "updated"
            if len(found) < _PAGE:
                break
        self.ask("POST", self.comments.format(number=number), body)
        return "written"

    def _me(self) -> str:
        """Return the name of the token's user; an empty text for an app, whose token may not ask for that."""
        reply = self._send("GET", f"{self.server}/user")
        return str(reply.json()[self.author[1]]) if reply.is_success else ""

    def ask(self, method: str, path: str, body: dict[str, str] | None = None) -> Any:
        """Return what the API answers. Raises PreflightError: it cannot be reached, or refuses."""
        reply = self._send(method, f"{self.server}{self.repository}{path}", body)
        if not reply.is_success:
            remedy = f"; {self.lacks}" if reply.status_code in (401, 403, 404) else ""
            raise PreflightError(f"{self.host} refused {method} {path}: HTTP {reply.status_code}{remedy}")
        return reply.json()

    def _send(self, method: str, url: str, body: dict[str, str] | None = None) -> httpx2.Response:
        with httpx2.Client(**Network.to(self.server).client, headers=self.headers, timeout=_TIMEOUT) as client:
            try:
                return client.request(method, url, json=body)
            except httpx2.HTTPError as error:
                raise PreflightError(f"{self.host} gave no answer: {type(error).__name__}: {error}") from error
