"""The client of a server: what a context's `client:` tells the server of it, and how it answers what that asks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

import attrs

from keval import __version__
from keval.errors import PreflightError
from keval.records.models import Model
from keval.seams.contexts import ServerSpec


@attrs.frozen
class Accept:
    """Forms that a server sends are filled in with these values, by the names of their fields."""

    accept: Mapping[str, Any]


Answer: TypeAlias = Literal["decline", "cancel", "defaults", "visit"] | Accept
"""What becomes of what a server asks a user (elicitation).

It is declined or cancelled; or a form is filled in, with its schema's defaults or with values given; or a page is said
to be visited, which nobody does.
"""


@attrs.frozen(kw_only=True)
class Sampling:
    """What a server gets that asks for a model's text: the same `text` each time, or what a `model` writes."""

    text: str | None = None
    model: Model | None = None

    def __attrs_post_init__(self) -> None:
        if None not in (self.text, self.model):
            raise ValueError("one of text and model answers a server that asks for a model's text; leave out the other")


@attrs.frozen(kw_only=True)
class Client:
    """What a server is told of its client, which then answers as declared here, whatever the agent can do itself.

    `elicitation` may be a list: the first time a trial is asked, the first entry answers, then the next, and the last
    one from then on. `roots` are the folders to name. Nothing is declared of what is left out: there the agent answers,
    if it declares that it can.
    """

    name: str = "keval"
    title: str | None = None
    version: str | None = None
    roots: tuple[Path, ...] = ()
    sampling: Sampling = Sampling()
    elicitation: Answer | tuple[Answer, ...] = ()
    extensions: Mapping[str, Mapping[str, Any]] = attrs.field(factory=dict)

    def __attrs_post_init__(self) -> None:
        if self.name != "keval" and self.version is None:
            raise ValueError(f"a client has a version, too, by which servers may behave; add that of {self.name}")

    @property
    def info(self) -> dict[str, Any]:
        """How the client introduces itself (`clientInfo`)."""
        info = {"name": self.name, "title": self.title, "version": self.version or __version__}
        return {name: text for name, text in info.items() if text is not None}

    @property
    def script(self) -> tuple[Answer, ...]:
        """What answers elicitations, one after another."""
        return self.elicitation if isinstance(self.elicitation, tuple) else (self.elicitation,)

    @property
    def answers_by_trial(self) -> bool:
        """Whether an answer depends on the trial that it is for, which must not share its server then."""
        return len(self.script) > 1 or self.sampling.model is not None

    @property
    def capabilities(self) -> dict[str, Any]:
        """The capabilities that are declared: no mode of one that the client would only refuse, and no tools."""
        modes: dict[str, Any] = {"url" if each == "visit" else "form": {} for each in self.script}
        said = {"elicitation": modes, "extensions": self.extensions}
        empty = {"roots": bool(self.roots), "sampling": self.sampling != Sampling()}
        return {name: told for name, told in said.items() if told} | {name: {} for name in empty if empty[name]}

    def prepare(self, label: str) -> None:
        """Import what answers the server `label`. Raises PreflightError: a root is no folder."""
        for root in self.roots:
            if not root.is_dir():
                raise PreflightError(f"server '{label}': the root '{root}' is not a folder; correct it or leave it out")
        if self.sampling.model is not None:
            import keval_mcp.server.sampling  # noqa: F401 - SDKs of models take a second, for which no trial should wait


def client_of(server: ServerSpec) -> Client:
    """Return the client that a server is told of."""
    return server.client if isinstance(server.client, Client) else Client()
