"""What to do about a server that does not come up, as far as its errors tell."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from urllib.parse import urlsplit

from keval.errors import suggestion
from keval.records.servers import ServerAddress
from keval.seams.remedies import remedy

_OF_URLS = (
    ("http", r"HTTP 404", "; try {origin}/mcp"),
    ("http", r"HTTP 405", "; if it speaks SSE, write `type: sse`"),
    ("sse", r"\b404 ", "; try {origin}/mcp with `type: http`"),
    ("sse", r"40[0-6] ", "; if it speaks streamable HTTP, write `type: http`"),
    ("", r"\bSSL\b.*(version|record)", "; it does not speak TLS: write http:// in its URL"),
    ("", r"disconnected|HTTPS port|400 Bad Request", "; if it speaks TLS, write https:// in its URL"),
    ("", r"attempts failed|refused", "; nothing listens there: start it, or correct the host and the port"),
    ("", r"Name or service|nodename|getaddrinfo", "; no host has that name: correct it"),
    ("", r"HTTP (404|405|501)|text/html", "; it is no MCP server: correct the path of the URL"),
)
_VARIABLE = re.compile(r"\b([A-Z][A-Z0-9]*_[A-Z0-9_]+)\b")
_TRUSTED = ("SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE")
_NEEDED = re.compile(r"KeyError|\b(set|required?|missing|environment|variable|provide|need|not found|undefined)", re.I)


def start_remedy(server: ServerAddress, reason: str, said: str) -> str:
    """Return what to do, by the reason, and what the server said on standard error; an empty text if that is open."""
    if server.url is not None:
        parts = urlsplit(server.url)
        fits = (told for kind, sign, told in _OF_URLS if kind in ("", server.transport) and re.search(sign, reason))
        told = next((told for told in fits if "/mcp" not in told or parts.path.rstrip("/") != "/mcp"), "")
        return told.format(origin=f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}")
    if "closed" not in reason:
        return ""
    needed = [name for line in said.splitlines() if _NEEDED.search(line) for name in _VARIABLE.findall(line)]
    if re.search("UnknownIssuer|CERTIFICATE_VERIFY|issuer certificate|self.signed cert", said):
        needed = [each for each in _TRUSTED if each in os.environ]  # with which this machine trusts its network
    if name := next((each for each in needed if each not in server.env), None):
        written = f"write env: {{{name}: '${{{name}}}'}} (with `keval init`: --env {name})"
        return f"; it seems to need a variable: {written}, and export that"
    if re.search("not found in the package registry|npm error 404", said):
        return "; no package has that name: correct it"
    if "No such file" in said or "Cannot find module" in said:
        named = (each for each in server.args if re.search(r"\w\.\w+$", each) or f"/{each}'" in said)
        files = (Path(server.cwd or "") / each for each in named)
        return next((told for each in files if (told := remedy("file", each, FileNotFoundError()))), "")
    return "" if said else "; it wrote nothing: start its command by hand to see why"


def command_remedy(command: str, path: str, folder: Path) -> str:
    """Return what to do about a command that is not found on a PATH, nor in a folder."""
    first, *others = command.split()
    if others and shutil.which(first, path=path):
        return f"write command: {first}, args: [{', '.join(others)}]"
    if (folder / command).is_file():
        return f"it cannot be run: `chmod +x {command}`, or write the program that runs it as the command"
    names = {name for each in path.split(os.pathsep) if os.path.isdir(each) for name in os.listdir(each)}
    near = suggestion(command, names, likeness=0.75)  # a machine has many programs
    if not near and not others and re.search(r"/|\w\.\w+$", command):
        near = remedy("file", folder / command, FileNotFoundError())
    told = "install it or give its path; `uvx NAME` starts a server of PyPI, `npx -y NAME` one of npm"
    return near.removeprefix("; ") or told
