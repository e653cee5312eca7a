"""A server with tools that no model API takes the names of; one of them answers when another one is called."""

from __future__ import annotations

import threading

from tests.stdio_server import Content, Tool, serve, text

come = threading.Event()


def wait() -> Content:
    come.wait()
    return text("met")


def arrive() -> Content:
    come.set()
    return text("came")


TOOLS = {
    "wait here": Tool(lambda arguments, meta: wait()),
    "wait/here": Tool(lambda arguments, meta: arrive()),
    "x" * 70: Tool(lambda arguments, meta: text("long")),
    "x" * 69: Tool(lambda arguments, meta: text("shorter")),
}

serve("meeting", lambda: TOOLS)
