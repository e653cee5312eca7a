"""The table of a run's trials."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page

from keval_viewer.app import Serving
from tests.viewing import client_of


@pytest.fixture
def path(served: Serving) -> str:
    """The path of the trials of the hostile run."""
    with client_of(served) as client:
        (run,) = client.get("/runs.json").json()
    return f"{run['url']}/trials"


def shown(page: Page) -> list[str]:
    """The ids of the questions of the rows that are shown."""
    return page.locator("#table tbody tr:not(.spacer) th bdi").all_inner_texts()
