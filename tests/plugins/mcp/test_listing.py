"""The digest of what a server offers."""

from __future__ import annotations

import hashlib

from keval_mcp.server.session import Listing

ONE = {"name": "one", "description": "First ☂", "inputSchema": {"type": "object", "required": ["a"]}}
TWO = {"name": "two", "inputSchema": {"type": "object"}}


def test_digest_is_that_of_the_canonical_json() -> None:
    canonical = '[["one","First ☂",{"required":["a"],"type":"object"}],["two",null,{"type":"object"}]]'

    assert hashlib.sha256(canonical.encode()).hexdigest() == Listing((ONE, TWO)).digest


def test_digest_does_not_depend_on_the_order() -> None:
    assert Listing((ONE, TWO)).digest == Listing((TWO, ONE)).digest


def test_digest_changes_with_a_description_and_a_schema() -> None:
    described = {**ONE, "description": "Second"}
    loosened = {**ONE, "inputSchema": {"type": "object"}}

    assert 3 == len({Listing((tool, TWO)).digest for tool in (ONE, described, loosened)})
