"""The files of a new evaluation: made in memory, and written all or not at all."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal, TypeAlias

import attrs
import yaml
from jinja2 import Environment, PackageLoader, StrictUndefined

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
_METRICS: Mapping[Goal, Sequence[str]] = {
    "server": ("basic/no_tool_errors",),
    "agents": (),
    "agent": (),
    "answers": ("basic/latency",),
}
"""Beside the judge's rubrics. Seconds, tokens and tool calls are in every report."""


@attrs.frozen
class Project:
    """What is to be written into a workplace, by path."""

    workplace: Workplace
    files: Mapping[Path, str]

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
        return Project(workplace, files)

    def name(self, workplace: Workplace) -> str:
        """The name of the evaluation: that of its only server, or of its folder."""
        return self.listed[0].server.label if len(self.listed) == 1 else label_of(workplace.folder.name)

    def _config(self, workplace: Workplace) -> str:
        contexts = {each.server.label: dict(each.server.options) for each in self.listed}
        return render(
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


def render(template: str, **about: Any) -> str:
    """Return a file made of a template of this package."""
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
