"""A record: what one agent did in a run, as a pair of files under a name of its own."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any
from uuid import UUID

import attrs

from keval import Manifest
from keval.plugin import dump

SCHEMA_VERSION = "0.3.0"
_UNPORTABLE = re.compile(r'[<>:"/\\|?*\x00-\x1f\x7f]')
_RESERVED = re.compile(r"(con|prn|aux|nul|com[1-9]|lpt[1-9])(\..*)?|data", re.IGNORECASE)
"""What Windows takes for a device, and what the format keeps for the root of its tree."""
_FAMILIES = {
    "anthropic": re.compile(r"claude\b", re.IGNORECASE),
    "google": re.compile(r"gemini\b|gemma", re.IGNORECASE),
    "openai": re.compile(r"(chat)?gpt\b|o\d\b|codex\b", re.IGNORECASE),
}
"""Families of models, by who made them, in the words of the format's own files."""
_PLATFORMS = {"gemini": "google"}
"""Platforms that have another name than the organization that made their models."""


@attrs.frozen
class Record:
    """Which agent of which run a pair of files is about; nothing in it depends on when it is exported."""

    run: str
    evaluation: str
    agent: str
    started: datetime
    model: Mapping[str, Any]
    simulated: bool

    @classmethod
    def of(cls, manifest: Manifest, agent: str) -> Record:
        """The record of an agent of the run that has this manifest."""
        entry = manifest.agents[agent]
        simulated = entry.model in manifest.simulated
        model = model_info(entry.model, entry.type, agent, simulated=simulated)
        started = datetime.fromisoformat(manifest.started or "1970-01-01T00:00:00+00:00")
        return cls(manifest.run, manifest.evaluation, agent, started, model, simulated)

    @property
    def model_id(self) -> str:
        return str(self.model["id"])

    @property
    def epoch(self) -> str:
        """When the run started, in seconds of Unix time."""
        return str(int(self.started.timestamp()))

    @property
    def evaluation_id(self) -> str:
        """Unique to this agent of this run: two runs may start in the same second."""
        return f"{self.evaluation}.{self.agent}.{self.run}/{self.model_id}/{self.epoch}"

    @property
    def uuid(self) -> UUID:
        """The same for the same agent and model of the same run, so that exporting again replaces the files.

        The format wants the form of version 4, which is random; here a hash stands in for chance.
        """
        digest = hashlib.sha256("\n".join([self.run, self.agent, self.model_id]).encode()).digest()
        return UUID(bytes=digest[:16], version=4)

    @property
    def aggregate_path(self) -> PurePosixPath:
        """Where the aggregate is, as the format lays out its tree: `data/<evaluation>/<developer>/<model>/`."""
        plugin, _, name = self.model_id.rpartition("/")
        folders = (self.evaluation, self.model.get("developer", plugin), name)
        return PurePosixPath("data", *map(_folder, folders), f"{self.uuid}.json")

    @property
    def rows_path(self) -> PurePosixPath:
        """Where the instances are: beside the aggregate."""
        return self.aggregate_path.with_name(f"{self.uuid}_samples.jsonl")

    def evaluation_name(self, condition: str) -> str:
        """What a condition's results are called; each condition is an evaluation of its own."""
        return f"{self.evaluation}.{condition}"


def model_info(model: str | None, plugin: str, label: str, *, simulated: bool) -> dict[str, Any]:
    """Describe the model of an agent or judge.

    The format asks for one: where none is known, as of recorded answers, the plugin and its label stand in, and
    `additional_details.model` says so. Who hosts a model, and whether its weights are open, no run knows.
    """
    platform, _, name = (model or "").partition("/")
    told = {"developer": _developer(platform, name), "inference_platform": platform} if model else {}
    return {
        "name": f"{name or label}{' (simulated)' if simulated else '' if model else ' (model unknown)'}",
        "id": model or f"{plugin}/{label}",
        **told,
        "additional_details": as_texts(
            {
                "deployment_type": "unknown",
                "model_availability": "unknown",
                "simulated": simulated,
                "model": None if model else "unknown",
            }
        ),
    }


def _developer(platform: str, name: str) -> str:
    """Return who made a model, by the name that it has on its platform.

    Platforms that host models of others name them as Hugging Face does, `organization/model`. Where the name tells
    nothing, the platform is taken for the developer, as it is for models that are simulated.
    """
    organization, slash, _ = name.rpartition("/")
    if slash:
        return organization.rpartition("/")[2]
    by_name = (developer for developer, names in _FAMILIES.items() if names.match(name))
    return next(by_name, _PLATFORMS.get(platform, platform))


def _folder(name: str) -> str:
    """A name as the name of a folder on any system."""
    portable = _UNPORTABLE.sub("_", name).rstrip(". ")
    return f"{portable}_" if not portable or _RESERVED.fullmatch(portable) else portable


def as_text(value: Any) -> str:
    """A text as it is, and anything else as JSON."""
    return value if isinstance(value, str) else dump(value).decode()


def as_texts(values: Mapping[str, Any]) -> dict[str, str]:
    """The values as text, without those that are `None`."""
    return {str(name): as_text(value) for name, value in values.items() if value is not None}
