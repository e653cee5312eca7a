"""What the manifest says of a condition's servers, and the listings that it refers to."""

from __future__ import annotations

from collections.abc import Iterable

from keval.errors import PreflightError
from keval.execute.opened import OpenedContext
from keval.execute.preflight import Ready
from keval.listings import ServerListing
from keval.manifest import Manifest, ServerEntry
from keval.recorder import Blob
from keval.redaction import Redactor
from keval.servers import ToolOffer

__all__ = ["check_offers", "listing_blobs", "server_entries"]


def server_entries(contexts: Iterable[OpenedContext], redact: Redactor) -> dict[str, ServerEntry]:
    """Describe the servers of a condition, by name."""
    return {offer.server: _entry(offer, context, redact) for context in contexts for offer in context.offers}


def listing_blobs(ready: Ready, redact: Redactor) -> list[Blob]:
    """Return what all servers say of themselves, before and after interventions."""
    offers = [offer for contexts in ready.contexts.values() for context in contexts for offer in context.offers]
    return [blob for offer in offers for blob in _blobs(offer, redact) if blob is not None]


def check_offers(manifest: Manifest, ready: Ready) -> None:
    """Raise PreflightError if a server offers other tools here than a manifest says."""
    for condition, entry in manifest.conditions.items():
        for offer in ready.offers(condition):
            expected = entry.servers.get(offer.server)
            if expected is not None and expected.sha256 != offer.digest:
                raise PreflightError(
                    f"condition {condition!r}: the server {offer.server!r} offers other tools here than the manifest of"
                    f" {manifest.run} says; run it in the same version"
                )


def _entry(offer: ToolOffer, context: OpenedContext, redact: Redactor) -> ServerEntry:
    listing, original = _blobs(offer, redact)
    return ServerEntry(
        tools=tuple(redact.data(offer.tools)),
        sha256=offer.digest,
        listing=listing.sha256 if listing else None,
        interventions=tuple(redact.data(each.as_config()) for each in context.interventions),
        original_sha256=offer.original_digest,
        original_listing=original.sha256 if original else None,
        aliases=redact.data(dict(context.aliases.get(offer.server, {}))),
        shared=offer.sharing.shared if offer.sharing else None,
        sharing=redact.text(offer.sharing.why) if offer.sharing else None,
        isolation_verified=offer.sharing.verified if offer.sharing else None,
        answers=context.answers.get(offer.server),
    )


def _blobs(offer: ToolOffer, redact: Redactor) -> tuple[Blob | None, Blob | None]:
    offered, original = ServerListing.offered(offer), ServerListing.original(offer)
    return (
        offered.blob(redact.content) if offered else None,
        original.blob(redact.content) if original else None,
    )
