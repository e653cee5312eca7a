"""The job that `keval ci init` writes, and which secrets it needs."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

import attrs
import click

from keval.cli.config_argument import read_config
from keval.cli.messages import tell
from keval.config.variables import filling
from keval.plan.build import make_plan
from keval.plan.plan import Plan
from keval.seams.installation import Installation, Origin, package_of
from keval_start.models import chosen_model
from keval_start.project import render
from keval_start.variables import looks_secret
from keval_start.workplace import Workplace

HOSTS = {"github": "a workflow for GitHub Actions", "gitlab": "a job for GitLab CI/CD"}
TRIGGERS = {
    "every": "every pull request, and the comment /keval",
    "label": "pull requests with the label keval, and the comment /keval",
    "comment": "the comment /keval alone (on GitLab: by hand)",
}
_REQUIREMENTS = "requirements.txt"
_REFERENCE = re.compile(r"\$\{(\w+)\}")
_GITHUB = re.compile(r"https://github\.com/([\w.-]+/[\w.-]+?)(\.git)?/?")


def write(config: Path, host: str, on: str, *, against: bool = False) -> None:
    """Write the job, and say what is left to do. Raises ConfigError: the config is wrong, or the file there already."""
    workplace, names = Workplace.of(config.resolve().parent), _referenced(config)
    with filling(dict.fromkeys(names, "x")):
        plan = make_plan(read_config(config))
    names = [*dict.fromkeys([*names, *_keys(plan)])]
    origin, command, caution = _installing(workplace, plan)
    path = workplace.workflow if host == "github" else workplace.repository / ".gitlab-ci.yml"
    if host == "gitlab" and path.exists():
        path = workplace.repository / ".gitlab" / f"{workplace.workflow.stem}.yml"
    workplace.check_absent(path)
    action = _GITHUB.fullmatch(origin.place) if origin.kind == "git" else None
    text = render(
        f"{host}.yaml.j2",
        name=workplace.workflow.stem,
        config=config.name,
        place=Path(os.path.relpath(workplace.folder, workplace.repository)).as_posix(),
        on=on,
        against=against,
        action=f"{action[1]}@{origin.commit}" if action else "",
        install=command,
        requirements=(workplace.folder / _REQUIREMENTS).is_file(),
        # GitHub refuses secrets of which the name begins with its own.
        secrets={name: f"KEVAL_{name}" if name.startswith("GITHUB_") else name for name in names},
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    click.echo(f"wrote {workplace.shown(path)}")
    if path.parent.name == ".gitlab":
        tell(f"note: add to .gitlab-ci.yml: include: {{local: {path.relative_to(workplace.repository).as_posix()}}}")
    if names:
        tell(f"note: it reads the secrets {', '.join(names)}; set them in the settings of the repository")
    if host == "gitlab":
        tell("note: it comments by KEVAL_GITLAB_TOKEN, an access token of the project with the scope api")
    tell(f"note: it installs keval by `{command}`{caution}")
    own = sorted({d for each in plan.components() if not (d := each.distribution).startswith("keval-")})
    if own or any("command" in each.options for each in plan.evaluation.contexts):
        tell("note: add to it what installs " + ", ".join([*own, "what servers and agents need"]))


def drop_secrets(config: Path) -> Sequence[str]:
    """Take the secrets of a config out of the environment, and return the variables that it lacks.

    GitHub sets the secrets that it keeps from a job to empty texts. Raises ConfigError.
    """
    names = _referenced(config)
    with filling(dict.fromkeys(names, "x")):
        keys = _keys(make_plan(read_config(config)))
    for name in (*names, *keys):
        if name in keys or not (value := os.environ.get(name, "")) or looks_secret(name, value):
            os.environ.pop(name, None)
    return [name for name in dict.fromkeys((*names, *keys)) if name not in os.environ]


def _referenced(config: Path) -> list[str]:
    """Return the variables of a config that have no default there."""
    # What cannot be read is told where the config is.
    found = _REFERENCE.findall(config.read_text("utf-8", "replace")) if config.is_file() else []
    return [name for name in dict.fromkeys(found) if name not in ("HOME", "USER", "PATH")]


def _keys(plan: Plan) -> list[str]:
    """Return the variables with the keys of the models of a plan."""
    return [key for model in plan.models if model.endpoint is None and (key := chosen_model(str(model)).key)]


def _installing(workplace: Workplace, plan: Plan) -> tuple[Origin, str, str]:
    """Return where keval came from, the command that installs it from there, and what to say of that place."""
    origin, caution = Installation.here_and_now().origin, ""
    if origin.kind in ("folder", "wheels"):
        place = Path(origin.place)
        if place.is_relative_to(workplace.repository):
            origin = attrs.evolve(origin, place=os.path.relpath(place, workplace.folder))
        else:
            caution = "; that folder is on this machine: change the line, unless CI has it, too"
    # A branch moves, and an editable installation is for whoever changes keval.
    origin = attrs.evolve(origin, revision=origin.commit, editable=False)
    try:
        # The name of a requirement ends before its version and its marker.
        brought = {re.split(r"[^\w-]", each, maxsplit=1)[0] for each in requires("keval") or () if "extra" not in each}
    # The core may be installed without the package that brings the others.
    except PackageNotFoundError:
        brought = set()
    components = plan.components()
    owners = {package_of(each.group, each.name) for each in components}
    more = sorted(package for package in owners if package and package not in brought)
    command = [*origin.tool(others=[origin.requirement(package) for package in more])]
    python = any((each.group, each.name) == ("keval.agents", "python") for each in components)
    if python and (workplace.folder / _REQUIREMENTS).is_file():
        command += ["--with-requirements", _REQUIREMENTS]  # the function runs in keval's own process
    return origin, shlex.join(command), caution
