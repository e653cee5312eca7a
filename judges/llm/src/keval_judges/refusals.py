"""Refusals: fields of a request that a model does not take, found out by asking it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import attrs

from keval.plugin import ModelError

if TYPE_CHECKING:
    from keval_clients import Client

_REFUSED = {400, 422}
"""HTTP statuses of a request that is wrong in itself; Mistral and servers made with FastAPI answer 422."""

_SAID = {"output_config": r"output[_ ](?:config|format)"}
"""Patterns of what endpoints call a field, where that is not its name alone."""


@attrs.define
class Refusals:
    """Sends requests, without the fields that the model has refused.

    A refusal is remembered when the request without that field was answered, as an error may name one by chance.
    """

    _known: frozenset[str] = attrs.field(default=frozenset(), init=False)

    async def post(
        self,
        client: Client,
        path: str,
        body: Mapping[str, Any],
        *,
        instead: Mapping[str, Mapping[str, Any]],
        headers: Mapping[str, str],
    ) -> tuple[dict[str, Any], tuple[str, ...]]:
        """Send a request and return the reply, and which fields of the body the model refused.

        `instead` has the fields that may be left out, each with those that then take its place.

        Raises:
            TrialError: as `Client.post` does, but for what leaving a field out cures.
        """
        refused = self._known
        while True:
            sent = dict(body)
            for name in refused & body.keys():
                del sent[name]
                sent.update(instead[name])
            try:
                reply = await client.post(path, sent, headers)
            except ModelError as error:
                named = _first_named(error, instead.keys() & sent.keys())
                if named is None:
                    raise
                refused = refused | {named}
            else:
                self._known |= refused
                return reply, tuple(name for name in instead if name in refused & body.keys())


def _first_named(error: ModelError, fields: Iterable[str]) -> str | None:
    """Return the field that a refusal is about: the first, as a message may go on to the fields that are taken."""
    if error.status not in _REFUSED:
        return None
    places = {}
    for name in fields:
        found = re.search(rf"\b{_SAID.get(name, name)}\b", str(error), re.IGNORECASE)
        if found is not None:
            places[name] = found.start()
    return min(places, key=places.__getitem__, default=None)
