"""What bounds a reply over HTTP, whichever library reads it: bytes on the wire, bytes unpacked, and redirects."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any, Literal
from urllib.parse import urljoin, urlsplit

import attrs

from keval.errors import TrialError

ENCODINGS = "gzip, deflate"
"""The content codings that replies may have, as a request names them; zlib unpacks them within a bound."""
MOST_REDIRECTS = 5

_ANY_FORM = 47
"""zlib's window bits for a stream with the header of zlib or of gzip (zlib manual, inflateInit2)."""
_RAW = -15
_MOST_MEMBERS = 1000
"""Gzip streams that may follow one another in a body: each costs a copy of what is left."""
_SHOWN = 200
REDIRECTS = {301, 302, 303, 307, 308}
_TO_GET = {301, 302, 303}
"""Redirects that turn POST into GET (RFC 9110, section 15.4)."""


class ReplyTooLargeError(Exception):
    """A reply has more bytes than it may have."""


class EncodingError(Exception):
    """A reply is packed in a way that was not asked for, or is not packed as it says."""


@attrs.define(eq=False)
class Unpacker:
    """Counts what arrives of a body and unpacks it, and never holds more than `most` bytes of it at a time.

    `begin_anew` lets the count begin again, for a body of many messages.
    """

    most: int
    encoding: str = ""
    _length: int = attrs.field(default=0, init=False)
    _packed: int = attrs.field(default=0, init=False)
    _members: int = attrs.field(default=0, init=False)
    _zlib: Any = attrs.field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        self.encoding = self.encoding and self.encoding.strip().lower()
        if self.encoding in ("", "identity"):
            self.encoding = ""
        elif self.encoding not in ("gzip", "x-gzip", "deflate"):
            raise EncodingError(f"it is packed as {self.encoding[:_SHOWN]!r}, which was not asked for")

    def unpack(self, piece: bytes) -> bytes:
        """Return what a piece of the body holds. Raises ReplyTooLargeError and EncodingError."""
        if not self.encoding:
            self._length += len(piece)
            if self._length > self.most:
                raise ReplyTooLargeError
            return piece
        # Without this a body that unpacks to nothing would be read for as long as it comes.
        self._packed += len(piece)
        if self._packed > self.most:
            raise ReplyTooLargeError
        found = []
        while piece:
            if self._zlib is None or self._zlib.eof:
                self._members += 1
                if self._members > _MOST_MEMBERS:
                    raise EncodingError(f"it has more than {_MOST_MEMBERS:,} parts, each packed for itself")
                self._zlib = zlib.decompressobj(_ANY_FORM)
            found.append(self._inflated(piece))
            self._length += len(found[-1])
            if self._length > self.most:
                raise ReplyTooLargeError
            piece = self._zlib.unused_data
        return b"".join(found)

    def end(self) -> None:
        """Raise EncodingError if a packed body ends before what it holds does."""
        if self.encoding and self._packed and not self._zlib.eof:
            raise EncodingError(f"it ends in the middle of what is packed as {self.encoding}")

    def begin_anew(self) -> None:
        """Count from here."""
        self._length = self._packed = 0

    def _inflated(self, piece: bytes) -> bytes:
        room = self.most - self._length + 1
        begins = self._packed == len(piece)
        try:
            found: bytes = self._zlib.decompress(piece, room)
        except zlib.error as error:
            if self.encoding != "deflate" or not begins or self._members > 1:
                raise EncodingError(f"it says content-encoding: {self.encoding}, and is not packed so") from error
            self.encoding, self._zlib = "raw deflate", zlib.decompressobj(_RAW)  # what many servers mean by it
            return self._inflated(piece)
        return found


def too_large(limit: int, stage: Literal["agent", "model"]) -> TrialError:
    """Return the error for a reply of more than `limit` bytes; another attempt may get a shorter one."""
    problem = f"the {stage}'s reply has more than {limit:,} bytes; raise execution.max_reply_bytes if that is right"
    return TrialError(problem, stage=stage, kind="reply_too_large", retryable=True)


class RedirectError(Exception):
    """A reply leads to where a request must not follow; the message says where, and why not."""


def following(method: str, url: str, status: int, headers: Mapping[str, str]) -> str | None:
    """Return the address to which a reply leads a request, if it leads to one.

    A request is for one origin (RFC 6454): another one would see the question and its answer would count, and so would
    that of an `https:` address of the same host, which a config can name itself.

    Raises RedirectError: the address is of another origin, or the request would lose its body on the way.
    """
    location = headers.get("location")
    if status not in REDIRECTS or location is None:
        return None
    try:
        there = urlsplit(urljoin(url, location))
        same = origin(there.geturl()) == origin(url) and there.username is None
    except ValueError as error:
        raise RedirectError(f"redirects to {location[:_SHOWN]!r}, which is no address") from error
    shown = repr(there._replace(netloc=there.netloc.rpartition("@")[2], query="", fragment="").geturl()[:_SHOWN])
    if not same:
        raise RedirectError(
            f"redirects to {shown}, which is not asked, as it would see the request; if that is right, make it the URL"
        )
    if status in _TO_GET and method not in ("GET", "HEAD"):
        raise RedirectError(
            f"redirects to {shown} with status {status}, at which {method} becomes GET and loses its body; make it the"
            " URL"
        )
    return there.geturl()


def origin(url: str) -> tuple[str, str | None, int | None]:
    """Return the origin of an address: scheme, host and port. Raises ValueError: it is none."""
    address = urlsplit(url)
    scheme = address.scheme.lower()
    return scheme, address.hostname, address.port or {"http": 80, "https": 443}.get(scheme)
