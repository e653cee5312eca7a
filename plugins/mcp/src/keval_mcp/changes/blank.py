"""Blank images and silence: what stands for pictures and sounds in a placebo."""

from __future__ import annotations

import base64
import binascii
import struct
import zlib

__all__ = ["blank_audio", "blank_image"]

_UNKNOWN = (256, 256)
_MOST = 4096
"""Pixels of a side."""
_RATE = 8000
"""Samples of a second, of 8 bits each."""


def blank_image(data: str) -> dict[str, str]:
    """Return a grey PNG in base64, as wide and high as the image in `data`, with its `mimeType`."""
    width, height = (max(1, min(side, _MOST)) for side in _size(_decoded(data)))
    rows = (b"\0" + b"\x80" * width) * height
    png = b"\x89PNG\r\n\x1a\n" + b"".join(
        _chunk(kind, content)
        for kind, content in (
            (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)),
            (b"IDAT", zlib.compress(rows)),
            (b"IEND", b""),
        )
    )
    return {"data": base64.b64encode(png).decode(), "mimeType": "image/png"}


def blank_audio(data: str) -> dict[str, str]:
    """Return silence as WAV in base64, of as many bytes as the sound in `data`, with its `mimeType`."""
    silence = b"\x80" * max(0, len(_decoded(data)) - 44)
    form = struct.pack("<HHIIHH", 1, 1, _RATE, _RATE, 1, 8)
    body = b"WAVEfmt " + struct.pack("<I", len(form)) + form + b"data" + struct.pack("<I", len(silence)) + silence
    wav = b"RIFF" + struct.pack("<I", len(body)) + body
    return {"data": base64.b64encode(wav).decode(), "mimeType": "audio/wav"}


def _decoded(data: str) -> bytes:
    try:
        return base64.b64decode(data)
    except (binascii.Error, ValueError):
        return b""


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def _size(image: bytes) -> tuple[int, int]:
    """Read width and height of a PNG, GIF or JPEG from its header."""
    if image.startswith(b"\x89PNG\r\n\x1a\n") and len(image) >= 24:
        width, height = struct.unpack(">II", image[16:24])
        return width, height
    if image.startswith((b"GIF87a", b"GIF89a")) and len(image) >= 10:
        width, height = struct.unpack("<HH", image[6:10])
        return width, height
    return _jpeg_size(image) if image.startswith(b"\xff\xd8") else _UNKNOWN


def _jpeg_size(image: bytes) -> tuple[int, int]:
    """Find the frame header of a JPEG (ITU-T T.81, B.2.2): a marker from C0 to CF, but for C4, C8 and CC."""
    place = 2
    while place + 9 <= len(image) and image[place] == 0xFF:
        marker, length = image[place + 1], int.from_bytes(image[place + 2 : place + 4], "big")
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", image[place + 5 : place + 9])
            return width, height
        place += 2 + length
    return _UNKNOWN
