"""Facts: what a server is told about the trial it works for, in the form each carrier can hold.

One mapping becomes the `_meta` of every call behind the tap, and the headers or the environment of a session that
belongs to one trial. A name such as `preferences` is `keval/preferences`, `x-keval-preferences` and
`KEVAL_PREFERENCES`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias
from urllib.parse import quote

import attrs

from keval import Sample
from keval.seams.contexts import ServerSpec

Facts: TypeAlias = Callable[[Sample], Mapping[str, Any]]
"""What a bundle tells its server about a sample, beside the trial's id: JSON values by identifier."""


def no_facts(sample: Sample) -> Mapping[str, Any]:
    """Tell the server nothing but the trial's id."""
    return {}


def as_texts(told: Mapping[str, Any]) -> dict[str, str]:
    """Return what headers and variables can hold: a text as it is, any other value as JSON."""
    return {name: value if isinstance(value, str) else json.dumps(value) for name, value in told.items()}


def tell(server: ServerSpec) -> ServerSpec:
    """Return `server` as one trial connects to it, with what it is `told` in its environment or its headers.

    Headers hold no more than ASCII, so there the text is percent-encoded.
    """
    if server.transport == "stdio":
        env = {f"KEVAL_{name.upper()}": text for name, text in server.trial_facts.items()}
        return attrs.evolve(server, env={**server.env, **env})
    headers = {f"x-keval-{name}": quote(text, safe="") for name, text in server.trial_facts.items()}
    return attrs.evolve(server, headers={**server.headers, **headers})
