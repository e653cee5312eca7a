"""The environment's variables for the network: proxies, certificates and keys, checked before the first request.

Every HTTP client is given what is found here, as libraries read these variables in ways of their own: one refuses
`[::1]` in NO_PROXY, another looks for a certificate file that is not there and raises what no user understands.
"""

from __future__ import annotations

import os
import re
import ssl
import stat
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import attrs

from keval.errors import PreflightError
from keval.records.models import Wire

CERTIFICATE_FILES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS")
CERTIFICATE_FOLDERS = ("SSL_CERT_DIR",)
_MAY_BE_FOLDERS = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
_PROXIES = ("http", "https", "all")
_SCHEMES = frozenset({"http", "https"})
_OTHER_PROXIES = frozenset({"socks", "socks4", "socks4a", "socks5", "socks5h"})
"""Proxies that are some, though keval's clients cannot use them."""
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_HOST = re.compile(r"\*|(?:\w+://)?\*?\.?[\w.*-]+(?::\d+)?(?:/\d+)?")
"""An entry of NO_PROXY that is no IPv6 address: a host or the end of one, an IPv4 address or a network of them."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
"""The name of a header (RFC 9110, section 5.1)."""
_HEADERS_OF_KEYS = frozenset({"api-key", "x-api-key", "x-goog-api-key"})
_SCHEMES_OF_KEYS = frozenset({"basic", "bearer", "token"})
"""Schemes of `authorization` that a key alone follows."""

_KEYS: Mapping[Wire, tuple[str, str]] = {
    "openai-chat": ("authorization", "Bearer {}"),
    "openai-responses": ("authorization", "Bearer {}"),
    "anthropic": ("x-api-key", "{}"),
    "gemini": ("x-goog-api-key", "{}"),
}
"""The header in which each protocol has a key."""


@attrs.frozen
class Tls:
    """Options of how one server is verified over TLS, and of how keval shows who it is itself (mutual TLS).

    `verify` is a file or a folder with authorities that are trusted besides the system's, or `False`: anybody may be
    the server. `cert` is a certificate with what leads to its authority, and `cert_key` its key, if that is elsewhere.
    """

    verify: Path | bool = True
    cert: Path | None = None
    cert_key: Path | None = None
    cert_password: str | None = attrs.field(default=None, repr=False)

    def set_up(self, context: ssl.SSLContext) -> None:
        """Let a context do all this. Raises PreflightError: a file cannot be used."""
        if self.verify is False:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        elif isinstance(self.verify, Path):
            try:
                files = [*filter(Path.is_file, self.verify.iterdir())] if self.verify.is_dir() else [self.verify]
                # OpenSSL itself reads a folder only if each name is the hash of a subject.
                context.load_verify_locations(cadata="\n".join(file.read_text("ascii", "ignore") for file in files))
            except (OSError, ValueError) as error:
                why = "is not there" if not self.verify.exists() else "has no certificate in PEM that can be read"
                raise PreflightError(f"'verify' names '{self.verify}', which {why}; correct it") from error
        if self.cert is not None:
            key = self.cert_key or self.cert
            try:
                # Without a password, OpenSSL would ask for one on the terminal.
                context.load_cert_chain(self.cert, key, self.cert_password or str)
            except OSError as error:
                why = f"'{self.cert}' or '{key}' is no PEM that can be read, or 'cert_password' does not open it"
                if missing := [each for each in (self.cert, key) if not each.exists()]:
                    why = f"'{missing[0]}' is not there"
                elif getattr(error, "reason", None) == "KEY_VALUES_MISMATCH":
                    why = f"'{key}' is not the key of '{self.cert}'"
                raise PreflightError(f"'cert' and its key cannot be used: {why}") from error


SYSTEM = Tls()
"""The system's authorities, and no certificate."""


@attrs.frozen
class Network:
    """How one origin is reached: by which proxy, if by any, and with which certificates it is verified."""

    proxy: str | None = attrs.field(repr=False)
    tls: ssl.SSLContext | bool

    @classmethod
    def to(cls, url: str, tls: Tls = SYSTEM) -> Network:
        """Read the environment for a URL. Raises PreflightError with every fault of its variables, or one of `tls`."""
        check_variables()
        return cls(_proxy_of(url), _certificates(os.environ.get("SSL_CERT_FILE"), tls) if _is_https(url) else False)

    @property
    def client(self) -> dict[str, Any]:
        """The arguments by which httpx and httpx2 take these settings, and none of their own."""
        return {"proxy": self.proxy, "verify": self.tls, "trust_env": False}


def check_variables() -> None:
    """Raise PreflightError with every fault of the variables for proxies and certificates."""
    if problems := variable_problems():
        raise PreflightError(problems)


def variable_problems() -> list[str]:
    """Return what is wrong with the variables for proxies and certificates, and what to do about it."""
    values = {name: value for name, value in os.environ.items() if name.upper() in _READ and value}
    return [*_problems(tuple(sorted(values.items())))]


_READ = {*CERTIFICATE_FILES, *CERTIFICATE_FOLDERS, "NO_PROXY", *(f"{name.upper()}_PROXY" for name in _PROXIES)}


@cache
def _problems(values: tuple[tuple[str, str], ...]) -> tuple[str, ...]:
    return tuple(problem for name, value in values for problem in _problems_of(name, value))


def _problems_of(name: str, value: str) -> Iterator[str]:
    if name in CERTIFICATE_FILES or name in CERTIFICATE_FOLDERS:
        for path in value.split(os.pathsep) if name in CERTIFICATE_FOLDERS else [value]:
            if path and (problem := _certificates_problem(name, path)):
                yield f"{name} names {path!r}, which {problem}; correct the variable, or unset it"
    elif name.upper() == "NO_PROXY":
        for entry in filter(None, map(str.strip, value.split(","))):
            if not _is_host(entry):
                yield f"{name} has {entry[:100]!r}, which is no host; correct or remove it there"
    elif name.upper().endswith("_PROXY") and not _is_proxy(value):
        # Its value may hold a password.
        yield (
            f"{name} must be the address of a proxy, such as http://proxy.example:3128; correct the variable, or unset"
            " it"
        )


def _certificates_problem(name: str, path: str) -> str | None:
    try:
        mode = os.stat(path).st_mode
        if name in CERTIFICATE_FOLDERS or (name in _MAY_BE_FOLDERS and stat.S_ISDIR(mode)):
            return None if stat.S_ISDIR(mode) else "is no folder"
        if not stat.S_ISREG(mode):
            return "is no file"
        _load_certificates(os.path.realpath(path))
    except FileNotFoundError:
        return "is not there"
    except ssl.SSLError:
        return "holds no certificate in PEM that can be read"
    except (OSError, ValueError) as error:
        return f"cannot be read: {getattr(error, 'strerror', None) or error}"
    return None


@cache
def _load_certificates(path: str) -> None:
    """Read a bundle as OpenSSL does, once, though several variables name it: a bundle of a system takes 40 ms."""
    ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(path)


def _is_host(entry: str) -> bool:
    address, _, length = re.sub(r"^\[([^]]*)\](?::\d+)?$", r"\1", entry).partition("/")
    try:
        ip_address(address)
    except ValueError:
        return bool(_HOST.fullmatch(entry))
    return not length or length.isdecimal()


def _is_proxy(value: str) -> bool:
    return _address(value, _SCHEMES | _OTHER_PROXIES) is not None


def _address(value: str, schemes: frozenset[str]) -> str | None:
    """Return the address of a proxy, which is reached over HTTP if it has no scheme; `None` if it is none."""
    written = value if "://" in value else f"http://{value}"
    try:
        address = urlsplit(written)
        fine = address.scheme in schemes and bool(address.hostname) and address.port != 0
    except ValueError:
        return None
    return written if fine and not re.search(r"[\s\x00-\x1f\x7f]", value) else None


def _proxy_of(url: str) -> str | None:
    """Return the proxy that the environment names for a URL.

    Raises PreflightError: it is of a kind that cannot be used.
    """
    address = urlsplit(url)
    host = address.hostname or ""
    if host in _LOOPBACK:
        return None
    from urllib.request import getproxies, proxy_bypass  # it imports email and http, which loopback does not need

    proxies = getproxies()
    if proxy_bypass(address.netloc) or proxy_bypass(host):
        return None
    name = address.scheme if address.scheme in proxies else "all"
    if name not in proxies:
        return None
    proxy = _address(proxies[name], _SCHEMES)
    if proxy is None:
        variable = f"{name}_proxy"
        raise PreflightError(
            f"the environment variable {variable} (or {variable.upper()}) must be the address of an http:// or https://"
            f" proxy, as no other kind can be used; correct it, or name {host} in no_proxy"
        )
    return proxy


def _is_https(url: str) -> bool:
    return url.lower().startswith("https:")


@cache
def _certificates(file: str | None, tls: Tls) -> ssl.SSLContext:
    """Return what verifies a server: OpenSSL's certificates where there are any, which SSL_CERT_FILE may name, and
    else the system's."""
    paths = ssl.get_default_verify_paths()
    if sys.platform == "linux" and (paths.cafile or paths.capath):
        context = ssl.create_default_context()
    else:
        from truststore import SSLContext as SystemContext  # few need it

        context = SystemContext(ssl.PROTOCOL_TLS_CLIENT)
    tls.set_up(context)
    return context


def key_header(wire: Wire, key: str) -> Mapping[str, str]:
    """Return the header with a key, as the protocol sends one."""
    name, form = _KEYS[wire]
    return {name: form.format(key)}


def key_problem(name: str, key: str) -> str | None:
    """Return what is wrong with a key that `name` holds, a variable or an option, and what to do about it.

    A key is what a header takes without a doubt: visible ASCII. The message does not show it.
    """
    inner = key.strip()
    if not inner:
        return f"{name} is empty, or has nothing but blanks; set it to the key"
    if inner != key:
        where = "begins" if key.lstrip() != key else "ends"
        blank = key[0] if where == "begins" else key[-1]
        return f"{name} {where} with {_BLANKS.get(blank, 'a blank')}; remove it, as it would be sent with the key"
    if len(key) > 1 and key[0] in "'\"`" and key[0] == key[-1]:
        return f"{name} has quotes around the key; remove them, as they would be sent with it"
    for number, letter in enumerate(key, 1):
        if not "!" <= letter <= "~":
            told = _BLANKS.get(letter, f"U+{ord(letter):04X}")
            return f"{name} has {told} as its character {number} of {len(key)}, which no key has; copy the key anew"
    return None


_BLANKS: Mapping[str, str] = {" ": "a space", "\n": "a newline", "\r": "a carriage return", "\t": "a tab"}


def check_headers(record: object, attribute: attrs.Attribute[Mapping[str, str]], value: Mapping[str, str]) -> None:
    """Validate an option with headers: what a header cannot hold is often the end of a file that a key was read from.

    Raises ValueError.
    """
    for name, text in value.items():
        if not _HEADER.fullmatch(name):
            raise ValueError(f"'{attribute.name}' must have names of headers; {name[:100]!r} is none")
        scheme, _, rest = text.partition(" ")
        problem = None
        if scheme.lower() in _SCHEMES_OF_KEYS:
            problem = key_problem(f"the key of {name}", rest)
        elif name.lower() in _HEADERS_OF_KEYS or text.strip() != text:
            problem = key_problem(name, text)
        elif _CONTROL.search(text):
            problem = f"{name} has a control character; remove it"
        if problem is not None:
            raise ValueError(f"'{attribute.name}' must have texts that HTTP can send: {problem}")


def check_key(record: object, attribute: attrs.Attribute[str | None], value: str | None) -> None:
    """Validate an option with a key or a token. Raises ValueError."""
    if value is not None and (problem := key_problem(f"'{attribute.name}'", value)):
        raise ValueError(problem)


def custom_headers(variable: str) -> dict[str, str]:
    """Read the headers that an environment variable has, as `Name: value`, one a line, as the vendors' SDKs do."""
    lines = (line.partition(":") for line in os.environ.get(variable, "").splitlines())
    return {name.strip().lower(): value.strip() for name, colon, value in lines if colon}
