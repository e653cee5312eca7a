"""A job of CI: the pull request that it is about, whether it may have secrets, and what `/keval` asks for."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

import attrs

from keval.errors import PreflightError
from keval_start.ci.api import Api

COMMAND = "/keval"
"""What a comment begins with that asks for an evaluation."""
_WRITERS = ("admin", "maintain", "write")
_SHA = re.compile(r"[0-9a-f]{7,40}")


@attrs.frozen
class Job:
    """The job that keval runs in: its `host`, and the number of the pull request that it is about, if it is about one.

    `keyless` says why the job must do without secrets: its code is of somebody whom nobody trusts yet. `page` is the
    URL of the job.
    """

    host: Literal["GitHub", "GitLab", ""] = ""
    number: int | None = None
    sha: str = ""
    keyless: str = ""
    page: str = ""
    event: Mapping[str, Any] = attrs.field(factory=dict, repr=False)

    @classmethod
    def here(cls) -> Job:
        """Return the job that the environment tells of."""
        environ = os.environ
        if environ.get("GITLAB_CI"):
            number, ours = environ.get("CI_MERGE_REQUEST_IID"), environ.get("CI_MERGE_REQUEST_PROJECT_ID")
            theirs = environ.get("CI_MERGE_REQUEST_SOURCE_PROJECT_ID")
            keyless = "it is from a fork" if theirs != ours else ""
            page, sha = environ.get("CI_JOB_URL", ""), environ.get("CI_COMMIT_SHA", "")
            return cls("GitLab", int(number) if number else None, sha, keyless, page)
        if not environ.get("GITHUB_ACTIONS"):
            return cls()
        event = json.loads(Path(environ["GITHUB_EVENT_PATH"]).read_text(encoding="utf-8"))
        issue = event.get("issue") or {}
        pull = event.get("pull_request") or (issue if "pull_request" in issue else {})
        keyless = "it is from a fork" if _is_fork(pull) else ""
        if environ.get("GITHUB_ACTOR") == "dependabot[bot]":
            keyless = "it is Dependabot's"
        page = "{GITHUB_SERVER_URL}/{GITHUB_REPOSITORY}/actions/runs/{GITHUB_RUN_ID}".format_map(environ)
        sha = (pull.get("head") or {}).get("sha") or environ.get("GITHUB_SHA", "")
        return cls("GitHub", pull.get("number"), sha, keyless, page, event)


@attrs.frozen
class Head:
    """The commit that a job is to evaluate; none, if it is `refused`. A reason `told` goes into the pull request."""

    sha: str = ""
    refused: str = ""
    told: bool = False


def head_of(job: Job, api: Api) -> Head:
    """Return the commit that a job on GitHub is to evaluate: the head of a pull request as whoever asked has seen it.

    Raises PreflightError: the event would give secrets to the code of forks, or GitHub refuses to tell.
    """
    name = os.environ.get("GITHUB_EVENT_NAME", "")
    if name in ("pull_request_target", "workflow_run"):
        raise PreflightError(f"the event {name} gives secrets to the code of forks; use pull_request")
    if name != "issue_comment":
        return Head(job.sha)
    comment = job.event["comment"]
    words = comment["body"].split()
    if job.number is None or words[:1] != [COMMAND]:
        return Head(refused=f"the comment does not ask for an evaluation of a pull request by {COMMAND}")
    user = comment["user"]["login"]
    allowed = api.ask("GET", f"/collaborators/{quote(user, safe='')}/permission")
    if allowed.get("permission") not in _WRITERS:
        return Head(refused=f"{user} may not write to this repository, and so not ask for an evaluation")
    pull = api.ask("GET", f"/pulls/{job.number}")
    sha = pull["head"]["sha"]
    if _is_fork(pull):
        told = "keval runs no code of forks where secrets are; the check of the pull request replays the recording."
        return Head(refused=f"{told} To ask live models, push {sha[:12]} to a branch of this repository.", told=True)
    if words[1:] and _SHA.fullmatch(words[1]):
        if not sha.startswith(words[1]):
            return Head(refused=f"The head is {sha[:12]} now, and not {words[1]}.", told=True)
    elif _time(pull["head"]["repo"]["pushed_at"]) > _time(comment["created_at"]):
        # Nobody has looked at what was pushed after the comment. The time of a commit is for its author to choose.
        told = f"Somebody pushed after the comment. Look at {sha[:12]}, and comment `{COMMAND} {sha[:12]}`."
        return Head(refused=told, told=True)
    return Head(sha)


def _is_fork(pull: Mapping[str, Any]) -> bool:
    """Return whether a pull request, if that is one, is from another repository, which may be gone."""
    head = pull.get("head")
    return head is not None and (head["repo"] or {}).get("full_name") != os.environ.get("GITHUB_REPOSITORY")


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)
