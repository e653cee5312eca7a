"""Jobs of GitHub Actions and GitLab CI, run as their runners run them: each step in bash, with what others passed on.

The repository is a Git repository below a folder of the test. Actions of others are replaced by what they do.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import attrs
import yaml

from tests.code_host import CodeHost, github_job

ROOT = Path(__file__).parents[1]
TOKEN = "job-token"
_GIT = {f"GIT_{who}_{what}": "t@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
_NAME = re.compile(r"'[^']*'|\b(?:github|steps|inputs|secrets)\.[\w.*-]+")


@attrs.define
class Done:
    """What a job did: the exit codes of its steps, and what they printed, by their names or those of their actions.

    `artifacts` are the files that it keeps, and those of folders, from the top of the workspace.
    """

    codes: dict[str, int] = attrs.field(factory=dict)
    said: dict[str, str] = attrs.field(factory=dict)
    artifacts: list[str] = attrs.field(factory=list)

    @property
    def errors(self) -> list[str]:
        return [line for line in self.said.get("Evaluate", "").splitlines() if line.startswith("::error")]


@attrs.frozen
class Runner:
    """A repository with its code host. `tools` come first on the path, which `environ` may replace."""

    root: Path
    host: CodeHost
    environ: Mapping[str, str] = attrs.field(factory=dict)

    @property
    def origin(self) -> Path:
        return self.root / "origin"

    @property
    def workspace(self) -> Path:
        return self.root / "workspace"

    def git(self, *args: str, folder: Path | None = None) -> str:
        environ = {**os.environ, **_GIT}
        return subprocess.run(
            ["git", *args], cwd=folder or self.origin, env=environ, capture_output=True, text=True, check=True
        ).stdout.strip()

    def write(self, files: Mapping[str, str]) -> None:
        for path, text in files.items():
            (self.origin / path).parent.mkdir(parents=True, exist_ok=True)
            (self.origin / path).write_text(text, encoding="utf-8")

    def push(self, files: Mapping[str, str], *, to: str = "") -> str:
        """Commit files on top of `main`, and onto a branch if one is named; return the commit."""
        if not self.origin.exists():
            self.origin.mkdir()
            self.git("init", "-q", "-b", "main")
            self.git("config", "uploadpack.allowAnySHA1InWant", "true")  # as for code hosts
        else:
            self.git("checkout", "-q", *(() if to else ("--detach",)), "main")
        self.write(files)
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", "change")
        return self.git("rev-parse", "HEAD")

    def github(
        self, workflow: str, event: dict[str, Any], name: str = "pull_request", secrets: Mapping[str, str] | None = None
    ) -> Done | None:
        """Run the only job of a workflow for an event; nothing if the workflow or the job is not for that."""
        data = yaml.safe_load(workflow)
        on, (job,) = data[True], data["jobs"].values()  # YAML 1.1 reads `on` as true
        kinds = (on.get(name) or {}).get("types", ["opened", "synchronize", "reopened", "created"])
        known = {
            "github": {"event_name": name, "event": event, "token": TOKEN},
            "secrets": secrets or {},
            "steps": {},
        }
        if name not in on or event.get("action", "created") not in kinds or not _holds(job.get("if", "true"), known):
            return None
        shutil.rmtree(self.workspace, ignore_errors=True)
        self.workspace.mkdir()
        for file in ("path.txt", "outputs.txt", "summary.md"):
            (self.root / file).unlink(missing_ok=True)
        environ = {
            **{key: value for key, value in os.environ.items() if key != "OPENAI_API_KEY"},
            **github_job(self.root, self.host, event, name),
            "GITHUB_PATH": str(self.root / "path.txt"),
            "GITHUB_WORKSPACE": str(self.workspace),
            "PATH": os.pathsep.join([str(self.root / "tools"), str(Path(sys.executable).parent), os.environ["PATH"]]),
            **self.environ,
            **{key: _filled(value, known) for key, value in job.get("env", {}).items()},
        }
        del environ["GITHUB_TOKEN"]  # which only a step is given that names it
        done, place = Done(), job.get("defaults", {}).get("run", {}).get("working-directory", ".")
        for step in job["steps"]:
            if "/keval@" not in step.get("uses", ""):
                self._step(step, known, environ, place, done)
                continue
            action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
            assert step["with"].keys() <= action["inputs"].keys()
            inputs = {key: each.get("default", "") for key, each in action["inputs"].items()}
            inputs |= {key: _filled(str(value), known) for key, value in step["with"].items()}
            own = known | {"inputs": inputs, "steps": {}}
            for each in action["runs"]["steps"]:
                self._step(each, own, environ | {"GITHUB_ACTION_PATH": str(ROOT)}, ".", done)
        return done

    def _step(
        self, step: Mapping[str, Any], known: dict[str, Any], environ: Mapping[str, str], place: str, done: Done
    ) -> None:
        condition = str(step.get("if", "true"))
        failed = any(done.codes.values())
        if (failed and "cancelled()" not in condition) or not _holds(condition, known):
            return
        if uses := step.get("uses"):
            done.codes[uses.partition("@")[0]] = 0
            given = {key: _filled(str(value), known) for key, value in step.get("with", {}).items()}
            if uses.startswith("actions/checkout@"):
                self._check_out(given.get("ref", "main"), whole=given.get("fetch-depth") == "0")
            elif uses.startswith("actions/upload-artifact@"):
                done.artifacts += self._files(Path(given["path"]))
            return
        added = self.root / "path.txt"
        path = reversed(added.read_text(encoding="utf-8").split()) if added.exists() else ()
        env = {**environ, "PATH": os.pathsep.join([*path, environ["PATH"]])}
        env |= {key: _filled(value, known) for key, value in step.get("env", {}).items()}
        (self.root / "outputs.txt").unlink(missing_ok=True)
        folder = self.workspace / _filled(step.get("working-directory", place), known)
        ran = _bash(["-eo", "pipefail", "-c", _filled(step["run"], known)], folder, env)
        done.codes[step["name"]], done.said[step["name"]] = ran.returncode, ran.stdout + ran.stderr
        known["steps"][step.get("id")] = {"outputs": self._outputs()}

    def _check_out(self, ref: str, *, whole: bool) -> None:
        """Leave a commit without a branch in the workspace, as actions/checkout does, with all branches of `origin`."""
        shutil.rmtree(self.workspace)
        self.workspace.mkdir()
        self.git("init", "-q", folder=self.workspace)
        self.git("remote", "add", "origin", f"file://{self.origin}", folder=self.workspace)
        fetched = ("+refs/heads/*:refs/remotes/origin/*",) if whole else ("--depth=1",)
        self.git("fetch", "-q", "origin", *fetched, ref, folder=self.workspace)
        self.git("checkout", "-q", self.git("-C", str(self.origin), "rev-parse", ref), folder=self.workspace)

    def _outputs(self) -> dict[str, str]:
        path = self.root / "outputs.txt"
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        return dict(line.split("=", 1) for line in lines)

    def gitlab(self, config: str, sha: str, *, variables: Mapping[str, str]) -> Done | None:
        """Run the only job of a configuration for a merge request; nothing if no rule of it lets it start."""
        (job,) = yaml.safe_load(config).values()
        own = {
            "GITLAB_CI": "true",
            "CI_API_V4_URL": self.host.url,
            "CI_COMMIT_SHA": sha,
            "CI_JOB_URL": "https://gitlab.example/1",
            "CI_MERGE_REQUEST_IID": "7",
            "CI_MERGE_REQUEST_PROJECT_ID": "4",
            "CI_MERGE_REQUEST_SOURCE_PROJECT_ID": "4",
            "CI_PIPELINE_SOURCE": "merge_request_event",
            "CI_PROJECT_ID": "4",
            **variables,
        }
        if not any(_lets(rule["if"], own) for rule in job["rules"]):
            return None
        self.workspace.mkdir(exist_ok=True)
        self._check_out(sha, whole=False)
        path = os.pathsep.join([str(self.root / "tools"), str(Path(sys.executable).parent), os.environ["PATH"]])
        ran = _bash(
            ["-eo", "pipefail", "-c", "\n".join(job["script"])],
            self.workspace,
            {**os.environ, "PATH": path, **self.environ, **own},
        )
        kept = (*job["artifacts"]["paths"], job["artifacts"]["reports"]["junit"])
        found = [file for each in kept for path in self.workspace.glob(each) for file in self._files(path)]
        return Done({"script": ran.returncode}, {"script": ran.stdout + ran.stderr}, found)

    def _files(self, path: Path) -> list[str]:
        files = path.rglob("*") if path.is_dir() else (path,)
        return [str(each.relative_to(self.workspace)) for each in files if each.is_file()]


def _bash(arguments: Iterable[str], folder: Path, env: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    command = ["bash", "--noprofile", "--norc", *arguments]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=300)


def _value(expression: str, known: Mapping[str, Any]) -> Any:
    """What an expression of GitHub's stands for; it has names, texts, operators and three functions."""

    def look(name: str) -> Any:
        found: Any = known
        for part in name.split("."):
            if part == "*":
                continue
            found = [each.get(part) for each in found] if isinstance(found, list) else (found or {}).get(part)
        return found

    python = _NAME.sub(lambda match: match[0] if match[0][0] == "'" else f"look({match[0]!r})", expression)
    python = python.replace("&&", " and ").replace("||", " or ").replace("!", " not ")
    functions = {
        "look": look,
        "cancelled": lambda: False,
        "contains": lambda whole, part: part in (whole or ()),
        "startsWith": lambda text, part: (text or "").startswith(part),
    }
    return eval(python.strip(), {"__builtins__": {}, "true": True}, functions)


def _holds(condition: str, known: Mapping[str, Any]) -> bool:
    return bool(_value(condition.strip().removeprefix("${{").removesuffix("}}"), known))


def _filled(text: str, known: Mapping[str, Any]) -> str:
    """A text with its expressions filled in."""
    return re.sub(r"\$\{\{(.*?)\}\}", lambda match: str(_value(match[1], known) or ""), text)


def _lets(rule: str, variables: Mapping[str, str]) -> bool:
    """Whether a rule of GitLab's holds: comparisons, all of which must hold."""
    for term in rule.split(" && "):
        name, operator, wanted = term.split(" ", 2)
        value = variables.get(name.removeprefix("$"), "")
        if operator == "=~":
            found = bool(re.search(wanted.strip("/"), value))
        else:
            assert "==" == operator
            found = value == (variables.get(wanted[1:], "") if wanted[0] == "$" else wanted.strip('"'))
        if not found:
            return False
    return True
