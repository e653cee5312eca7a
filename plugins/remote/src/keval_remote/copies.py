"""The copy of a run on this machine: which of its files are as they lie elsewhere, and bringing those that are not.

What was added to a growing file is a part, an object named by its range of bytes. The parts of `trials.jsonl` are under
`trials.jsonl.parts/GENERATION/`, and `trials.jsonl.parts/current` names the generation that counts: the file is so many
bytes of the plain object, with which the generation's name begins, and then its parts. A file that was replaced begins
another generation, which counts when all of it is there. Without `current`, the plain object is the file.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from zlib import crc32

import attrs
import orjson
from filelock import FileLock

from keval.files import replacing
from keval.store.serialization import dump
from keval_remote.lease import newest
from keval_remote.objects import Entry, Objects, UnreachableError

LEASE = ".lease"
RECORDING = "recording"
PARTS = ".parts"
CURRENT = "current"
_GENERATION = re.compile(r"(\d+)-\w+")
_PART = re.compile(r"(\d+)-(\d+)")
_TAIL = 4096
"""So many bytes before a place are compared to find out whether a file goes on there or is another one."""
_STATE = ".mirror.json"
_BLOCK = 8 << 20
_TRIES = 5
"""A file whose parts are removed while it is read is read again so often."""


@attrs.frozen
class Copied:
    """A file as it was brought: the version of the plain object, or the generation of its parts; and its size."""

    version: str
    generation: str
    size: int


@attrs.frozen
class State:
    """What is known of a run's copy.

    `token` is that of the lease under which this machine writes to the run, or did until it was killed; then what is
    here `is_newer` than what lies elsewhere. `written_until` is the Unix time until which another machine had a lease
    when that was looked at.
    """

    token: str | None = None
    written_until: float = 0.0
    files: Mapping[str, Copied] = attrs.field(factory=dict)

    @property
    def is_newer(self) -> bool:
        """Whether the run here may have more than lies elsewhere."""
        return self.token is not None


@attrs.frozen
class _Piece:
    """Bytes `begin` to `end` of a file, which are at the beginning of an object."""

    name: str
    begin: int
    end: int


@attrs.frozen
class _Layout:
    """A file as it lies elsewhere; see `Copied`."""

    version: str
    generation: str
    pieces: list[_Piece]

    @property
    def size(self) -> int:
        """The bytes of the file."""
        return self.pieces[-1].end if self.pieces else 0


@attrs.frozen
class RunCopy:
    """The copy of one run."""

    run: Path
    objects: Objects

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes from bringing files of the run, or beginning to write to it."""
        self.run.mkdir(parents=True, exist_ok=True)
        with FileLock(self.run / ".mirror.lock"):
            yield

    @property
    def state(self) -> State:
        """What is known of the copy."""
        try:
            found = orjson.loads((self.run / _STATE).read_bytes())
        except FileNotFoundError:
            return State()
        files = {name: Copied(**copied) for name, copied in found["files"].items()}
        return State(found["token"], found["written_until"], files)

    def keep(self, state: State) -> None:
        """Write what is known of the copy. Raises RunError."""
        with replacing(self.run / _STATE) as file:
            file.write(dump(state))

    def fetch(self, *, recording: bool = False) -> None:
        """Bring all files but blobs, and the recording only if it is wanted. Raises UnreachableError."""
        state, brought, listed = self.state, dict[str, Copied](), dict[str, Entry]()
        for wanted in (_are_scores, _are_no_scores):  # trials are uploaded before their scores
            listed = self.objects.list()
            brought |= self._bring_all(filter(wanted, names_in(listed)), listed, state)
        if recording:
            there = self.objects.list(RECORDING)
            brought |= self._bring_all((f"{RECORDING}/{name}" for name in names_in(there)), there, state)
        held = self._held(listed)
        kept = {name: copied for name, copied in state.files.items() if name.startswith(f"{RECORDING}/")}
        for name in state.files.keys() - brought.keys() - kept.keys():
            (self.run / name).unlink(missing_ok=True)
        if brought or state.files or held:
            self.keep(State(None, held, kept | brought))

    def fetch_some(self, *names: str) -> None:
        """Bring these files, those that there are. Raises UnreachableError."""
        folder = names[0].rpartition("/")[0]
        listed, state = self.objects.list(folder), self.state
        until = state.written_until if folder else self._held(listed)
        there = names_in(listed)
        found = [name for name in names if name.rpartition("/")[2] in there]
        files = {**state.files, **self._bring_all(found, listed, state)}
        if files != state.files or until != state.written_until:
            self.keep(attrs.evolve(state, written_until=until, files=files))

    def fetch_blob(self, name: str) -> None:
        """Bring a blob, whose content never changes. Raises UnreachableError."""
        if not (self.run / name).exists():
            self._download(name, self.run / name)

    def _held(self, listed: Iterable[str]) -> float:
        """Return the Unix time until which somebody has the lease of the run; 0 if nobody has."""
        held = newest(self.objects, LEASE) if any(name.startswith(f"{LEASE}.") for name in listed) else None
        return held[1].until if held else 0.0

    def _bring_all(self, names: Iterable[str], listed: Mapping[str, Entry], state: State) -> dict[str, Copied]:
        """Bring files of a folder that was listed, and return what was brought. Raises UnreachableError."""
        brought = {name: self._bring(name, listed, state.files.get(name)) for name in names}
        return {name: copied for name, copied in brought.items() if copied is not None}

    def _bring(self, name: str, listed: Mapping[str, Entry], copied: Copied | None) -> Copied | None:
        """Bring a file, or what is new of it, and return what was brought; `None` if it is not there."""
        for _ in range(_TRIES):
            try:
                layout = self._layout(name, listed)
                return None if layout is None else self._bring_once(name, layout, copied)
            except FileNotFoundError:  # it was removed, or brought into another form, since it was listed
                time.sleep(0.1)
                listed = self.objects.list(name.rpartition("/")[0])
        raise UnreachableError(f"{self.objects.url}/{name} changes again and again while it is read; try it again")

    def _layout(self, name: str, listed: Mapping[str, Entry]) -> _Layout | None:
        """Return a file of a folder that was listed as it lies elsewhere; `None` if it is not there."""
        folder, _, own = name.rpartition("/")
        if f"{own}{PARTS}" in listed:
            with suppress(FileNotFoundError):
                generation = self.objects.read(f"{name}{PARTS}/{CURRENT}").decode("ascii", "replace")
                if match := _GENERATION.fullmatch(generation):
                    return _Layout("", generation, self._pieces(name, generation, int(match[1])))
            listed = self.objects.list(folder)  # the plain object was perhaps written since
        base = listed.get(own)
        return None if base is None or base.is_folder else _Layout(base.version, "", [_Piece(name, 0, base.size)])

    def _pieces(self, name: str, generation: str, base: int) -> list[_Piece]:
        pieces, folder = [_Piece(name, 0, base)], f"{name}{PARTS}/{generation}"
        for part in sorted(self.objects.list(folder)):
            match = _PART.fullmatch(part)
            if match and int(match[1]) == pieces[-1].end:
                pieces.append(_Piece(f"{folder}/{part}", int(match[1]), int(match[2])))
        return pieces

    def _bring_once(self, name: str, layout: _Layout, copied: Copied | None) -> Copied:
        path = self.run / name
        here = path.stat().st_size if path.exists() else -1
        known = copied or Copied("", "", -1)
        if known == Copied(layout.version, layout.generation, layout.size) and here == known.size:
            return known
        # Somebody may have shortened or removed the copy, so that nothing of it can be gone on with.
        is_longer = (known.generation or layout.generation) and 0 <= known.size <= min(here, layout.size)
        end = known.size
        if not is_longer or not (known.generation == layout.generation or self._goes_on(path, layout, end)):
            if not layout.generation:
                self._download(name, path)
                return Copied(layout.version, "", path.stat().st_size)
            path.parent.mkdir(exist_ok=True)
            with replacing(path, sync_name=False):
                end = 0
        with path.open("r+b") as file:
            # An append that was cut off may have left bytes after the end that is known.
            file.truncate(end)
            file.seek(end)
            for content in self._read(layout, end, layout.size):
                file.write(content)
            return Copied(layout.version, layout.generation, file.tell())

    def _goes_on(self, path: Path, layout: _Layout, size: int) -> bool:
        """Return whether so many bytes of a file are the same here and elsewhere, by the last of them."""
        begin = max(0, size - _TAIL)
        return b"".join(self._read(layout, begin, size)) == _range(path, begin, size)

    def _read(self, layout: _Layout, begin: int, end: int) -> Iterator[bytes]:
        for piece in layout.pieces:
            last = min(end, piece.end)
            for at in range(max(begin, piece.begin), last, _BLOCK):
                stop = min(at + _BLOCK, last)
                content = self.objects.read(piece.name, at - piece.begin, stop - piece.begin)
                if len(content) != stop - at:
                    return  # it is being written, where that takes time
                yield content

    def _download(self, name: str, path: Path) -> None:
        path.parent.mkdir(exist_ok=True)
        # Renamed when it is whole, so that a reader never sees a part of it.
        unfinished = path.with_name(f".{path.name}.fetched")
        try:
            self.objects.download(name, unfinished)
            unfinished.replace(path)
        finally:
            unfinished.unlink(missing_ok=True)


def names_in(listed: Mapping[str, Entry]) -> set[str]:
    """Return the names of the files in a listing, which lie there plain or in parts."""
    return {name.removesuffix(PARTS) for name, entry in listed.items() if entry.is_folder is name.endswith(PARTS)}


def part_name(begin: int, end: int) -> str:
    """Return the name of a part."""
    return f"{begin:012d}-{end:012d}"


def _are_scores(name: str) -> bool:
    return name.lstrip(".").startswith("scores.")


def _are_no_scores(name: str) -> bool:
    return not name.startswith(".") and not _are_scores(name)


def _range(path: Path, begin: int, end: int) -> bytes:
    with path.open("rb") as file:
        file.seek(begin)
        return file.read(end - begin)


def tail(path: Path, end: int) -> int:
    """Return the checksum of the bytes of a file before a place."""
    return crc32(_range(path, max(0, end - _TAIL), end))
