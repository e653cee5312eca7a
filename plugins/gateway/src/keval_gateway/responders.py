"""Responders by name: what packages ship in the entry-point group `keval.responders`.

An entry is a factory: it is called with the run's seed and returns what answers the requests (`MakeResponder`). Listing
responders imports none of them. A responder is imported when the first request for it arrives, so that a broken one
fails the requests for it and no others.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence

from keval.errors import PluginError
from keval.seams import registry
from keval.seams.registry import Component
from keval_gateway.chat import ChatReply, ChatRequest, ModelFault, Respond

GROUP = "keval.responders"

_DEFAULT = "simulated"
"""The responder that answers for every name without a responder of its own."""


def installed_responders() -> Sequence[Component]:
    """List what is installed, by name."""
    return registry.components(GROUP)


def find_responder(name: str) -> Component | None:
    """Return the responder installed as `name` or `vendor/name`, if there is one.

    Raises:
        PluginError: two packages ship a responder of that name.
    """
    return registry.find(GROUP, name) if registry.has(GROUP, name) else None


def make_responder(name: str, seed: int) -> Respond:
    """Make the responder of a name.

    Raises:
        PluginError: none is installed under that name, two are, or it cannot be made; it names the package.
    """
    found = registry.find(GROUP, name)
    whose, factory = f"the responder {name!r} of {found.distribution} {found.version}", registry.load(found)
    try:
        made: Respond = factory(seed)
    except Exception as error:
        raise PluginError(
            f"{whose} cannot be made: {type(error).__name__}: {error};"
            f" reinstall {found.distribution} with what it requires"
        ) from error
    if not callable(made):
        raise PluginError(
            f"{whose} is of type {type(made).__name__}; its factory must return a function of a ChatRequest"
        )
    return made


class RespondersByName:
    """Answers each request with the responder that has the name of the request's model, or else with `simulated`."""

    def __init__(self, seed: int) -> None:
        """Make `simulated`; the others are made when they are first asked for. Raises what make_responder does."""
        self._seed = seed
        self._made: dict[str, Respond] = {_DEFAULT: make_responder(_DEFAULT, seed)}

    def __call__(self, request: ChatRequest) -> ChatReply | Awaitable[ChatReply]:
        """Answer one request.

        Raises:
            ModelFault: with status 404, when the responder that is asked for cannot be found or made.
        """
        name = request.model if registry.has(GROUP, request.model) else _DEFAULT
        if name not in self._made:
            try:
                self._made[name] = make_responder(name, self._seed)
            except PluginError as error:
                # Not a server error: what is installed stays the same, so that to ask again is of no use.
                raise ModelFault(404, str(error)) from error
        return self._made[name](request)
