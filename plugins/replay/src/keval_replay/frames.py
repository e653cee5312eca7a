"""The file of a recording: one compressed frame for each trial, judgement, server and model.

The file is a sequence of pairs: a skippable frame with a head (its CRC-32, and a small JSON object), and a Zstandard
frame with a checksum, whose content is JSON lines (RFC 8878, sections 3.1.1 and 3.1.2). So `zstdcat` prints the whole
file as lines, and an index is made by going from head to head, without decompressing anything. The first line of a
frame repeats its key.
"""

from __future__ import annotations

import os
import struct
import threading
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Literal, TypeAlias, TypeVar
from zlib import crc32

import attrs
import orjson
import zstandard

from keval.errors import RunError
from keval.files import DAMAGE, MOST_BYTES, explained, open_added, open_kept, sync_folder, write_all
from keval.records.models import Asker
from keval.store.lock import fetch_run
from keval.store.serialization import dump

T = TypeVar("T")

FrameRole: TypeAlias = Literal["agent", "judge", "server", "endpoint"]

FORMAT = 1
"""The version of the file."""
_FILE = "recording/traffic.jsonl.zst"

_SKIPPABLE = 0x184D2A57
"""One of the sixteen magic numbers of skippable frames."""
_PREFIX = struct.Struct("<III")
"""The magic number of a skippable frame, the size of its content in bytes, and the CRC-32 of the rest of it."""
_CHECK = 4
"""The bytes of the checksum, which are part of that content."""
_LONGEST_HEAD = 1 << 16
_ZSTANDARD = struct.pack("<I", 0xFD2FB528)
"""What a Zstandard frame begins with; no UTF-8 text has it, and a head is one."""
_LEVEL = 1
"""Higher ones make traffic hardly smaller, and take longer."""


@attrs.frozen
class FrameKey:
    """What a frame holds: all attempts at a `trial` of an agent, or at one `repetition` of a judgement of it.

    Also what a `server` listed under a `condition` before the first trial, or what is known of a `model`. Of two frames
    with one key, the later one counts.
    """

    role: FrameRole
    trial: str | None = None
    judge: str | None = None
    repetition: int | None = None
    condition: str | None = None
    server: str | None = None
    model: str | None = None

    @classmethod
    def of(cls, asker: Asker) -> FrameKey:
        """Return the key of what holds the traffic of all attempts of an asker."""
        if asker.role == "agent":
            return cls("agent", trial=asker.trial)
        return cls("judge", trial=asker.trial, judge=asker.label, repetition=asker.repetition)

    def told(self) -> dict[str, Any]:
        """Return what the key says, as plain data."""
        return {name: value for name in _FIELDS if (value := getattr(self, name)) is not None}


_FIELDS = tuple(field.name for field in attrs.fields(FrameKey))


class _OfThread(threading.local):
    """What each thread has of its own: to make a compressor takes longer than to compress a trial."""

    def __init__(self) -> None:
        self.compressor = zstandard.ZstdCompressor(level=_LEVEL, write_checksum=True)


_here = _OfThread()


@attrs.frozen
class _Place:
    """Where a frame stands in the file: its head at `at`, its content from `begin` to `end`."""

    at: int
    begin: int
    end: int


def traffic_file(run: Path) -> Path:
    """Return the file of a run's recording, by the run's directory; it is brought there if it lies elsewhere."""
    fetch_run(run, _FILE)
    return run / _FILE


def encoded_frame(key: FrameKey, lines: Iterable[bytes]) -> bytes:
    """Return a frame with its head, as it is appended to the file. The lines are given without newlines."""
    told = key.told()
    content = b"\n".join([dump({"frame": told}), *lines, b""])
    packed = _here.compressor.compress(content)
    head = dump({"keval": FORMAT, **told, "bytes": len(packed)})
    return b"".join([_PREFIX.pack(_SKIPPABLE, _CHECK + len(head), crc32(head)), head, packed])


class FrameFile:
    """Appends frames to the file of a recording, from any thread. Use as a context manager.

    A torn end, as a power cut leaves it, is cut off when the file is opened.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._writing = threading.Lock()

    def __enter__(self) -> FrameFile:
        """Open the file, made with its folder if need be. Raises RunError: it cannot be written, or is damaged."""
        folder = self._path.parent
        with explained(self._path):
            if not folder.exists():
                folder.mkdir(parents=True)
                # Or else a power cut may lose the new folder, with all that was written in it.
                sync_folder(folder.parent)
            self._file = os.fdopen(open_added(self._path, folder.parent), "ab", buffering=0)
        try:
            with open_kept(self._path, folder.parent) as written:
                whole = max((place.end for _, place in _heads(written, self._path)), default=0)
            with explained(self._path):
                if whole < os.fstat(self._file.fileno()).st_size:
                    os.ftruncate(self._file.fileno(), whole)
                    os.fsync(self._file.fileno())
                sync_folder(folder)
        # `__exit__` is not called for a block that was never entered.
        except BaseException:
            self._file.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def write(self, frames: bytes) -> None:
        """Append encoded frames; they are on disk after the next `append`. Raises RunError."""
        with explained(self._path), self._writing:
            write_all(self._file, frames)

    def append(self, frames: bytes) -> None:
        """Append encoded frames, and return when all that was written is on disk. Raises RunError."""
        self.write(frames)
        with explained(self._path):
            # Without the lock: others write while this waits for the disk.
            os.fsync(self._file.fileno())


class Frames:
    """The frames of a recording, for reading by key. The file stays open as long as the object lives.

    A torn end, as a power cut leaves it, is ignored; `torn` is the byte at which it begins, if there is one.
    """

    def __init__(self, path: Path) -> None:
        """Make the index. Raises RunError: the file cannot be read, is damaged, or is no recording."""
        self.path = path
        try:
            self._file = open_kept(path, path.parent.parent)
        except OSError as error:
            problem = error.strerror or error
            raise RunError(f"{path} cannot be read: {problem}; was the run recorded with --record?") from error
        weakref.finalize(self, self._file.close)
        found = [*_heads(self._file, path)]
        self._places: Mapping[FrameKey, _Place] = dict(found)
        end = found[-1][1].end if found else 0
        self.torn = end if end < os.fstat(self._file.fileno()).st_size else None

    @property
    def keys(self) -> Collection[FrameKey]:
        """The keys of all frames that count."""
        return self._places.keys()

    def __contains__(self, key: object) -> bool:
        return key in self._places

    def read(self, key: FrameKey, read: Callable[[bytes], T]) -> list[T]:
        """Return what `read` makes of each line of a frame. Raises KeyError, and RunError if the frame is damaged."""
        place = self._places[key]
        try:
            packed = self._between(place.begin, place.end)
            # The library holds to the limit below only if a frame names no size, and else allocates what it claims.
            if zstandard.frame_content_size(packed) > MOST_BYTES:
                raise ValueError(f"it has more than {MOST_BYTES} bytes")
            content = zstandard.ZstdDecompressor().decompress(packed, MOST_BYTES, allow_extra_data=False)
            first, *lines = content.splitlines()
            # Head and content have checksums of their own, and none tells of a content under another's head.
            if orjson.loads(first)["frame"] != key.told():
                raise ValueError(f"its head says {key.told()}, and its first line {first.decode()}")
        except (zstandard.ZstdError, *DAMAGE) as error:
            raise _damaged(self.path, place.at, error) from error
        found = []
        for number, line in enumerate(lines, start=2):
            try:
                found.append(read(line))
            except DAMAGE as error:
                raise _damaged(self.path, place.at, error, f"line {number} of ") from error
        return found

    def raw(self, key: FrameKey) -> bytes:
        """Return a frame with its head as it stands in the file. Raises KeyError."""
        place = self._places[key]
        return self._between(place.at, place.end)

    def _between(self, begin: int, end: int) -> bytes:
        self._file.seek(begin)
        return self._file.read(end - begin)


def _heads(file: BinaryIO, path: Path) -> Iterator[tuple[FrameKey, _Place]]:
    """Yield the key and place of each whole frame, in the order of the file. Raises RunError.

    A frame that ends behind the file's end is torn. Its head has a checksum, so damage is never taken for that.
    """
    size = os.fstat(file.fileno()).st_size
    at = 0
    while at + _PREFIX.size <= size:
        file.seek(at)
        magic, length, check = _PREFIX.unpack(file.read(_PREFIX.size))
        if magic == length == 0 and not file.read().strip(b"\0"):
            return  # room that a file system had made for what it never wrote
        if magic != _SKIPPABLE or not _CHECK < length <= _LONGEST_HEAD:
            problem = "is not the file of a recording" if at == 0 else f"is damaged at byte {at}: no frame begins there"
            raise RunError(f"{path} {problem}; restore the file")
        begin = at + _PREFIX.size + length - _CHECK
        head = file.read(length - _CHECK)
        # The head is cut off. If a frame's content stands in what was read, its length is damaged instead.
        if begin > size and _ZSTANDARD not in head:
            return
        if crc32(head) != check:
            raise _damaged(path, at, ValueError("the checksum of its head is wrong"))
        key, packed = _head(head, path, at)
        if begin + packed > size:
            return
        yield key, _Place(at, begin, begin + packed)
        at = begin + packed


def _head(head: bytes, path: Path, at: int) -> tuple[FrameKey, int]:
    try:
        data = orjson.loads(head)
        if data["keval"] != FORMAT:
            raise RunError(
                f"{path} has format {data['keval']}, and this version of keval reads format {FORMAT} only;"
                " use the version that made the recording, or record the run again"
            )
        packed = int(data["bytes"])
        if packed < 1:
            raise ValueError(f"a frame of {packed} bytes")
        return FrameKey(**{name: data[name] for name in _FIELDS if name in data}), packed
    except DAMAGE as error:
        raise _damaged(path, at, error) from error


def _damaged(path: Path, at: int, error: Exception, where: str = "") -> RunError:
    return RunError(f"{path}: {where}the frame at byte {at} is damaged: {error!r:.300}; restore the file")
