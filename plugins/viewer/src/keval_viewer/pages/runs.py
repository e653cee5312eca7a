"""The runs of the folder that is served: a table that is filtered, sorted, and renewed as runs come and go on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from functools import partial
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from keval_viewer.live import Sent, event_stream
from keval_viewer.page import Page, rendered, viewer_of
from keval_viewer.runs import STATES, Listing, Query

_EVERY = 1.0
"""Seconds between two looks at the folder, while a page is open."""


def _runs(request: Request, template: str) -> Response:
    listing = viewer_of(request).listing
    query = Query.of(request.query_params)
    rows, unread = listing.rows()
    chosen = query.chosen(rows)

    def sorted_by(name: str) -> str:
        """Return the URL of the table sorted by a column, the other way round if it is so already."""
        first = name if name in ("name", "state") else f"-{name}"
        other = name if first.startswith("-") else f"-{name}"
        return f"/?{urlencode({**query.parameters, 'sort': other if query.sort == first else first})}"

    return rendered(
        request,
        template,
        root=listing.runs.root,
        rows=chosen,
        total=len(rows),
        unread=unread,
        query=query,
        sorted_by=sorted_by,
        evaluations=sorted({row.evaluation for row in rows}),
        states=[state for state in STATES if any(row.state == state for row in rows)],
        version=listing.version,
    )


async def _events(request: Request) -> Response:
    return event_stream(_changes(viewer_of(request).listing, request.headers.get("last-event-id")))


async def _changes(listing: Listing, last: str | None) -> AsyncGenerator[Sent, None]:
    """Yield an event whenever a row has changed; one at once for a page that was away."""
    known = last
    while True:
        await asyncio.to_thread(listing.rows)
        if known != str(listing.version):
            # Without an id the page has just been made, and shows this version.
            if known is not None:
                yield Sent("changed", {}, id=str(listing.version))
            known = str(listing.version)
        await asyncio.sleep(_EVERY)


PAGE = Page(
    routes=(
        Route("/", partial(_runs, template="runs.html")),
        # The table alone, which the page's script puts in the place of the one that is shown.
        Route("/table", partial(_runs, template="runs_table.html")),
        Route("/events", _events),
    )
)
