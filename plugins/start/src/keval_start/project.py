"""The files of a new evaluation: made in memory, and written all or not at all."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path
from typing import Any, Literal, TypeAlias

import attrs
import yaml
from jinja2 import Environment, PackageLoader, StrictUndefined

from keval.seams.installation import Installation, package_of
from keval_start.agents import Agents
from keval_start.models import ChosenModel
from keval_start.questions import FILE, Questions
from keval_start.schema_command import evaluation_schema
from keval_start.servers import ListedServer, label_of
from keval_start.variables import Variables
from keval_start.workplace import Workplace

Goal: TypeAlias = Literal["server", "agents", "agent", "answers"]
"""What is evaluated: an MCP server, several agents, one's own agent, or answers that exist. Each has a template."""

CONFIG = "eval.yaml"
SCHEMA = "keval.schema.json"
_REQUIREMENTS = "requirements.txt"
_METRICS: Mapping[Goal, Sequence[str]] = {
    "server": ("basic/no_tool_errors",),
    "agents": (),
    "agent": (),
    "answers": ("basic/latency",),
}
"""Beside the judge's rubrics. Seconds, tokens and tool calls are in every report."""


@attrs.frozen
class Project:
    """What is to be written into a workplace, by path, and how the workflow installs keval."""

    workplace: Workplace
    files: Mapping[Path, str]
    install: str
    install_caution: str

    @property
    def config(self) -> Path:
        """The path of the config."""
        return self.workplace.folder / CONFIG

    @contextmanager
    def written(self) -> Iterator[None]:
        """Write all files, for a block; if that fails, or writing them, remove them again."""
        made: list[Path] = []
        try:
            for path, text in self.files.items():
                path.parent.mkdir(parents=True, exist_ok=True)
                with path.open("x", encoding="utf-8") as file:
                    # Not before it is open: a file of somebody else, at which that fails, must not be removed.
                    made.append(path)
                    file.write(text)
            yield
        except BaseException:
            for path in made:
                path.unlink(missing_ok=True)
                with suppress(OSError):  # up to the first folder that has something else in it
                    for folder in path.parents:
                        folder.rmdir()
            raise


@attrs.frozen
class Draft:
    """What an evaluation is to be made of: what the user said, and what the servers list."""

    goal: Goal
    agents: Agents
    listed: Sequence[ListedServer]
    model: ChosenModel
    questions: Questions
    variables: Variables

    def project(self, workplace: Workplace) -> Project:
        """Return the files of the evaluation."""
        folder = workplace.folder
        files = {folder / CONFIG: self._config(workplace)}
        if self.questions.records:
            lines = (json.dumps(record, ensure_ascii=False) for record in self.questions.records)
            files[folder / FILE] = "".join(f"{line}\n" for line in lines)
        files[folder / SCHEMA] = json.dumps(evaluation_schema(), indent=2, ensure_ascii=False) + "\n"
        if not (folder / ".gitignore").exists():
            files[folder / ".gitignore"] = "results/\n.*.lock\n"
        install, caution = self._installing(workplace)
        files[workplace.workflow] = self._workflow(workplace, install)
        return Project(workplace, files, install, caution)

    def name(self, workplace: Workplace) -> str:
        """The name of the evaluation: that of its only server, or of its folder."""
        return self.listed[0].server.label if len(self.listed) == 1 else label_of(workplace.folder.name)

    def _config(self, workplace: Workplace) -> str:
        contexts = {each.server.label: dict(each.server.options) for each in self.listed}
        return _render(
            f"{self.goal}.yaml.j2",
            config=CONFIG,
            name=self.name(workplace),
            questions=self.questions,
            agents=self.agents,
            listed=self.listed,
            contexts=contexts,
            shared=all(each.is_shared for each in self.listed),
            stdio=any(options["type"] == "stdio" for options in contexts.values()),
            prompt=self.goal != "answers" and not self.agents.own,
            folders=sorted({folder for each in self.listed for folder in each.folders(workplace.folder)}),
            model=self.model,
            metrics=_METRICS[self.goal],
            rubric="factual_adherence" if self.questions.graded else "helpfulness_and_clarity",
        )

    def _workflow(self, workplace: Workplace, install: str) -> str:
        names = [*self.variables.values, *([self.model.key] if self.model.key else [])]
        return _render(
            "workflow.yaml.j2",
            workflow=workplace.workflow.stem,
            config=CONFIG,
            place=Path(os.path.relpath(workplace.folder, workplace.repository)).as_posix(),
            install=install,
            requirements=(workplace.folder / _REQUIREMENTS).is_file(),
            others=self._others(),
            # GitHub refuses secrets of which the name begins with its own.
            secrets={name: f"KEVAL_{name}" if name.startswith("GITHUB_") else name for name in names},
        )

    def _installing(self, workplace: Workplace) -> tuple[str, str]:
        """Return the command by which the workflow installs keval from where it came, and what to say of that place."""
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
            brought = {
                re.split(r"[^\w-]", each, maxsplit=1)[0] for each in requires("keval") or () if "extra" not in each
            }
        # The core may be installed without the package that brings the others.
        except PackageNotFoundError:
            brought = set()
        owners = {package_of(group, name) for group, name in self._plugins()}
        more = sorted(package for package in owners if package and package not in brought)
        command = [*origin.tool(others=[origin.requirement(package) for package in more])]
        if "python" in self.agents.types and (workplace.folder / _REQUIREMENTS).is_file():
            command += ["--with-requirements", _REQUIREMENTS]  # the function runs in keval's own process
        return shlex.join(command), caution

    def _plugins(self) -> Sequence[tuple[str, str]]:
        """Return the plugins of the config, each with its group."""
        judge = "anthropic" if self.model.loop == "anthropic" else "openai"
        return [
            *(("keval.agents", name) for name in self.agents.types),
            *(("keval.contexts", str(each.server.options["type"])) for each in self.listed),
            *(("keval.metrics", name) for name in _METRICS[self.goal]),
            ("keval.judges", judge),
            ("keval.models", self.model.name.partition("/")[0]),
        ]

    def _others(self) -> Sequence[str]:
        """Return what the workflow cannot know how to install."""
        kinds = {"keval.agents": "the agent", "keval.models": "the provider"}
        found = [f"{kinds[group]} {name}" for group, name in self._plugins() if package_of(group, name) is None]
        found += [f"what {label} needs" for label in sorted(self.agents.own)]
        return [
            *found,
            *(f"what {each.server.label} needs" for each in self.listed if "command" in each.server.options),
        ]


def _render(template: str, **about: Any) -> str:
    environment = Environment(
        loader=PackageLoader("keval_start"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 - it writes YAML
    )
    environment.filters["yaml"] = _yaml
    return environment.get_template(template).render(about)


class _Dumper(yaml.SafeDumper):
    """Writes mappings as blocks and lists on one line, as configs are written by hand."""


_Dumper.add_representer(list, lambda dumper, items: dumper.represent_sequence("tag:yaml.org,2002:seq", items, True))


def _yaml(value: object, indent: int) -> str:
    """Write data as YAML below a key."""
    text = yaml.dump(value, Dumper=_Dumper, sort_keys=False, default_flow_style=False, width=110, allow_unicode=True)
    return text.rstrip("\n").replace("\n", "\n" + " " * indent)
