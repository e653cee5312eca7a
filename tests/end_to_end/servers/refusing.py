"""A server that refuses each call with the code of JSON-RPC that it is given."""

from typing import Any

from tests.stdio_server import Content, RefusedError, Tool, serve


def refuse(arguments: dict[str, Any], meta: dict[str, Any]) -> Content:
    raise RefusedError(f"the backend refuses with {arguments['code']}", code=arguments["code"])


serve("refusing", lambda: {"refuse": Tool(refuse, {"code": {"type": "integer"}}, ("code",))})
