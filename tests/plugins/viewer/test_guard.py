"""Who is let in, what is refused, and what every response forbids the browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from keval_viewer.app import Serving
from keval_viewer.guard import POLICY, session_of
from tests.viewing import client_of, served


@pytest.fixture
def stranger(served: Serving) -> Iterator[httpx2.Client]:
    """A client that was not let in."""
    with httpx2.Client(base_url=served.base, trust_env=False) as client:
        yield client


def test_the_printed_url_lets_a_browser_in_once_for_all(served: Serving, stranger: httpx2.Client) -> None:
    let_in = stranger.get(f"/?evaluation=a%20b&token={served.token}")
    after = stranger.get("/")

    assert (303, "/?evaluation=a+b") == (let_in.status_code, let_in.headers["location"])
    name, _, attributes = let_in.headers["set-cookie"].partition("; ")
    assert f"keval-{httpx2.URL(served.base).port}=" in name
    assert {"httponly", "path=/", "samesite=strict"} == set(attributes.lower().split("; "))
    assert 200 == after.status_code


def test_others_are_told_what_to_do(stranger: httpx2.Client) -> None:
    pages = [stranger.get("/"), stranger.get("/?token=guessed"), stranger.get("/static/page.css")]

    assert {403} == {page.status_code for page in pages}
    assert "Open the URL with the token that keval printed" in pages[0].text


def test_a_link_in_a_page_of_others_leads_on_without_a_redirect(served: Serving, stranger: httpx2.Client) -> None:
    """In a redirect from another site's link, a browser would withhold the cookie that it has just got."""
    page = stranger.get(f"{served.base}//evil.example/?token={served.token}", headers={"sec-fetch-site": "cross-site"})

    assert (200, "0; url=/evil.example/") == (page.status_code, page.headers["refresh"])


def test_a_page_of_others_changes_nothing(served: Serving) -> None:
    with client_of(served) as client:
        by_script = client.post("/", headers={"sec-fetch-site": "cross-site"})
        by_form = client.post("/")
        own = client.post("/", headers={"sec-fetch-site": "same-origin"})

    assert (403, 403, 405) == (by_script.status_code, by_form.status_code, own.status_code)


def test_every_response_says_what_a_browser_may_do(served: Serving) -> None:
    with client_of(served) as client:
        responses = [client.get(path) for path in ("/", "/runs/a/b", "/static/page.css", "/static/viewer/viewer.css")]

    assert [200, 404, 200, 200] == [response.status_code for response in responses]
    assert {POLICY} == {response.headers["content-security-policy"] for response in responses}
    assert "unsafe" not in POLICY
    assert {"nosniff"} == {response.headers["x-content-type-options"] for response in responses}


def test_no_path_leaves_the_folder(hostile_results: Path, tmp_path: Path) -> None:
    (run,) = hostile_results.glob("*/*")
    root = tmp_path / "results"
    (root / "evaluation").mkdir(parents=True)
    (root / "evaluation" / "linked").symlink_to(run)
    (root / "linked").symlink_to(run.parent)

    with served(root) as running, client_of(running) as client:
        listed = client.get("/").text
        asked = [
            "/runs/evaluation/linked",
            f"/runs/linked/{run.name}",
            f"/runs/{run.parent.name}%2F..%2Fevaluation/linked",
            "/runs/..%2F../etc",
            "/static/..%2Fpage.py",
            "/static/viewer/..%2F..%2Fpage.py",
        ]
        statuses = [client.get(path).status_code for path in asked]

    assert "linked" not in listed
    assert [404] * len(asked) == statuses


def test_a_browser_is_let_in_again_by_the_next_viewer_of_the_folder(
    hostile_results: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    session = session_of(hostile_results)

    with served(hostile_results, session) as first, client_of(first) as client:
        cookies = dict(client.cookies)
    port = httpx2.URL(first.base).port or 0
    with served(hostile_results, session_of(hostile_results), port) as again:
        page = httpx2.get(again.base, cookies=cookies, trust_env=False)

    assert 200 == page.status_code
    assert session_of(hostile_results) != session_of(tmp_path)
    (secret,) = (path for path in tmp_path.rglob("*") if path.is_file())
    assert 0o600 == secret.stat().st_mode & 0o777
