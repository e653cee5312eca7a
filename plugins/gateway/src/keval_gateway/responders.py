"""Responders by name: what packages ship in the entry-point group `keval.responders`.

An entry is a factory: it is called with the run's seed and returns what answers the requests (`MakeResponder`). Listing
responders imports none of them. A responder is imported when the first request for it arrives, so that a broken one
fails the requests for it and no others.
"""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from functools import cache
from importlib.metadata import EntryPoint, entry_points

import attrs

from keval.errors import PluginError
from keval_gateway.chat import ChatReply, ChatRequest, ModelFault, Respond

GROUP = "keval.responders"

_DEFAULT = "simulated"
"""The responder that answers for every name without a responder of its own."""


@attrs.frozen
class InstalledResponder:
    """An entry of the group, with the distribution that ships it."""

    name: str
    distribution: str
    version: str
    _point: EntryPoint = attrs.field(repr=False)

    def make(self, seed: int) -> Respond:
        """Import the factory and call it. Raises PluginError naming the package, whatever goes wrong."""
        try:
            made: Respond = self._point.load()(seed)
        except Exception as error:
            raise PluginError(
                f"the responder {self.name!r} of {self.distribution} {self.version} cannot be made:"
                f" {type(error).__name__}: {error}; reinstall {self.distribution} with what it requires"
            ) from error
        if not callable(made):
            raise PluginError(
                f"the responder {self.name!r} of {self.distribution} {self.version} is of type {type(made).__name__};"
                " its factory must return a function of a ChatRequest"
            )
        return made


@cache
def installed_responders() -> Sequence[InstalledResponder]:
    """List what is installed, by name; entry points are read once per process."""
    found = []
    for point in entry_points(group=GROUP):
        owner = (point.dist.name, point.dist.version) if point.dist else ("unknown", "unknown")
        found.append(InstalledResponder(point.name, *owner, point))
    return sorted(found, key=lambda each: (each.name, each.distribution))


def find_responder(name: str) -> InstalledResponder | None:
    """Return the responder installed as `name` or `vendor/name`, if there is one.

    Raises:
        PluginError: two packages ship a responder of that name.
    """
    owners = [each for each in installed_responders() if each.name == name]
    if len(owners) > 1:
        both = " and ".join(owner.distribution for owner in owners)
        raise PluginError(f"the responder {name!r} is shipped by {both}; uninstall one of them")
    return owners[0] if owners else None


def make_responder(name: str, seed: int) -> Respond:
    """Make the responder of a name.

    Raises:
        PluginError: none is installed under that name, two are, or it cannot be made.
    """
    found = find_responder(name)
    if found is not None:
        return found.make(seed)
    from keval.seams.installation import missing_package, package_of  # only who needs a remedy waits for it

    if package := package_of(GROUP, name):
        raise PluginError(f"the responder {name!r} {missing_package(package)}")
    known = ", ".join(dict.fromkeys(each.name for each in installed_responders())) or "none"
    raise PluginError(f"no responder named {name!r} is installed; installed: {known}")


class RespondersByName:
    """Answers each request with the responder that has the name of the request's model, or else with `simulated`."""

    def __init__(self, seed: int) -> None:
        """Make `simulated`; the others are made when they are first asked for. Raises what make_responder does."""
        self._seed = seed
        self._default = make_responder(_DEFAULT, seed)
        self._made: dict[str, Respond] = {_DEFAULT: self._default}

    def __call__(self, request: ChatRequest) -> ChatReply | Awaitable[ChatReply]:
        """Answer one request.

        Raises:
            ModelFault: with status 404, when the responder that is asked for cannot be found or made.
        """
        return self._responder(request.model)(request)

    def _responder(self, name: str) -> Respond:
        if name not in self._made:
            try:
                found = find_responder(name)
                if found is None:
                    return self._default
                self._made[name] = found.make(self._seed)
            except PluginError as error:
                # Not a server error: what is installed stays the same, so that to ask again is of no use.
                raise ModelFault(404, str(error)) from error
        return self._made[name]
