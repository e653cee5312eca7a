"""The digest of what a server offers, and how two lists of tools differ."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from keval_mcp.server.difference import difference
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


def test_listing_of_an_earlier_recording_is_read() -> None:
    kept = Listing((ONE,), {"name": "x"}, more={"_meta": {"region": "eu"}}).as_kept()
    earlier = {name: value for name, value in kept.items() if name != "more"}

    assert (Listing((ONE,), {"name": "x"}), {"region": "eu"}) == (
        Listing.told(earlier),
        Listing.told(kept).more["_meta"],
    )


ORDER = (
    "; the same words come in another order, as from a Python server that prints a set, whose order differs per"
    ' process: set PYTHONHASHSEED for it (`env: {PYTHONHASHSEED: "0"}`)'
)


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("The weather of today.", "The forecast of today.", "description of 'look' ('weather' → 'forecast')"),
        ("One two three", "One three", "description of 'look' ('two' → nothing)"),
        ("Look  it up", "Look it up", "description of 'look' (in white space alone)"),
        (None, "Look", "description of 'look' ('null' → 'Look')"),
        ("x", "y " * 400, f"description of 'look' ('x' → '{'y ' * 40}…')"),
        (
            "Takes {'b', 'a'} only",
            "Takes {'a', 'b'} only",
            f"""description of 'look' ("{{'b', 'a'}}" → "{{'a', 'b'}}"){ORDER}""",
        ),
        ("From here", "Form here", "description of 'look' ('From' → 'Form')"),
        (
            {"properties": {"city": {"type": "string", "enum": ["Kraków", "Żory"]}}},
            {"properties": {"city": {"type": "string", "enum": ["Żory", "Kraków"]}}},
            f"""inputSchema of 'look' ('["Kraków", "Żory"],' → '["Żory", "Kraków"],'){ORDER}""",
        ),
        (
            {"properties": {"n": {"default": 1}}},
            {"properties": {"n": {"default": True}, "m": {}}},
            'inputSchema of \'look\' (\'{"n": {"default": 1}}}\' → \'{"m": {}, "n": {"default": true}}}\')',
        ),
    ],
)
def test_difference_names_the_tool_the_text_and_the_words(before: Any, after: Any, told: str) -> None:
    first, now = (
        Listing((TWO, {"name": "look", "inputSchema": {}, "description": "", key: value}))
        for value in (before, after)
        for key in ["inputSchema" if isinstance(value, dict) else "description"]
    )

    assert first.digest != now.digest
    assert f"with another {told}" == difference(first, now)


def test_difference_is_short_however_much_differs() -> None:
    first, now = (
        Listing(
            tuple({"name": f"tool{n}", "description": f"Start {start}", "inputSchema": {}} for n in range(start, 9))
        )
        for start in (1, 2)
    )

    shown = ", ".join(f"with another description of 'tool{n}' ('1' → '2')" for n in (2, 3, 4))
    assert f"without tool1, {shown}, and 4 more texts" == difference(first, now)
