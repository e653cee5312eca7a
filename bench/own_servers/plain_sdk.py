"""A server of the official Python SDK 1.x, over stdio or SSE, for `bench/real_servers.py`: `plain_sdk.py [PORT]`."""

# mypy: disable-error-code="attr-defined,untyped-decorator"
# The SDK that keval has is a newer one. Version 1.10 reads annotations as they are, so none is a text here.

import sys

from mcp.server.fastmcp import FastMCP

PORT = int(sys.argv[1]) if len(sys.argv) > 1 else 0
server = FastMCP("plain", instructions="Adds and greets.", port=PORT or 8000)


@server.tool()
def add(a: int, b: int = 2) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def greet(name: str) -> str:
    """Greet somebody, in JSON."""
    return f'{{"greeting": "Hello, {name}", "polite": true}}'


@server.tool()
def fail(why: str) -> str:
    """Fail."""
    raise ValueError(why)


@server.resource("note://first")
def note() -> str:
    """Return the first note."""
    return "A note."


@server.prompt()
def ask(topic: str) -> str:
    """Ask about a topic."""
    return f"What about {topic}?"


server.run("sse" if PORT else "stdio")
