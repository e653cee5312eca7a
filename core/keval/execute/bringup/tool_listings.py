"""What the contexts of a config offer: their servers are started and asked, and no agent and no model is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import orjson

from keval.config.evaluation import Evaluation
from keval.execute.bringup.preflight import open_context
from keval.execute.bringup.resources import ResourceScope
from keval.execute.models.endpoints import all_of
from keval.plan.build import make_contexts
from keval.records.servers import ToolOffer, estimated_tokens
from keval.redaction import Redactor


@attrs.frozen
class ContextOffers:
    """What the servers of one context offer. `type` is its plugin's name.

    `origin` is the label of the context that it derives from in the end, and `interventions` what is changed, first to
    last, as a config writes it.
    """

    label: str
    type: str
    offers: Sequence[ToolOffer]
    origin: str | None = None
    interventions: Sequence[Mapping[str, Any]] = ()


async def read_offers(
    evaluation: Evaluation, labels: Sequence[str] = (), redactor: Redactor | None = None
) -> list[ContextOffers]:
    """Start the contexts with these labels, or all of an evaluation, and return what their servers list.

    `redactor` learns the tokens for servers before they are used.

    Raises:
        ConfigError: the evaluation is wrong, or has no such context.
        PreflightError: a server does not come up; with every problem.
    """
    contexts = make_contexts(evaluation, labels)
    scope = ResourceScope()
    try:
        opened = await all_of([open_context(each, evaluation, scope, redactor or Redactor()) for each in contexts])
    finally:
        await scope.close()
    return [
        ContextOffers(
            context.label,
            context.component.name,
            found.offers,
            context.origin,
            [change.as_config() for change in context.interventions],
        )
        for context, found in zip(contexts, opened, strict=True)
    ]


def definition_tokens(definition: Mapping[str, Any]) -> int:
    """Return about how many tokens a tool takes in a model request: its name, description and parameters as JSON.

    That is what model APIs get. They write it down in forms of their own, which are not published.
    """
    seen = {
        "name": definition.get("name"),
        "description": definition.get("description"),
        "parameters": definition.get("inputSchema"),
    }
    return estimated_tokens(orjson.dumps(seen).decode())


def instruction_tokens(offer: ToolOffer) -> int:
    """Return about how many tokens the instructions of a server take."""
    return estimated_tokens(offer.instructions or "")
