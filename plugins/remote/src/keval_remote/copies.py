"""The copy of a run on this machine: which of its files are as they lie elsewhere, and bringing those that are not.

What was added to a growing file is a part: an object whose name gives its order and its range of bytes. The parts of
`trials.jsonl` are under `trials.jsonl.parts/`. A name is `GENERATION-ORIGIN-BEGIN-END`. A file that was replaced here
begins another generation, at byte 0; one that goes on where the plain object ends begins its generation there. So the
file is the plain object up to the origin of the newest generation whose first part is there, and then the parts of that
generation, up to the first gap. `GENERATION-whole` says that the plain object is the file by now.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby
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
TAIL = 4096
"""So many bytes before a place are compared to find out whether a file goes on there or is another one."""
_STATE = ".mirror.json"
_BLOCK = 8 << 20
_TRIES = 5
"""A run that is settled while it is read is read again so often."""


@attrs.frozen
class Copied:
    """A file as it was brought: the version of the plain object, the generation of its parts (0: none), its size."""

    version: str
    generation: int
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
class Layout:
    """A file as it lies elsewhere: the plain object, if there is one, and the parts that count."""

    base: Entry | None
    parts: Parts

    @property
    def size(self) -> int:
        """The bytes of the file."""
        return self.parts.parts[-1].end if self.parts.parts else self.base.size if self.base else 0


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

    def layouts(self, folder: str = "", wanted: Callable[[str], bool] = bool) -> dict[str, Layout]:
        """Return the files of the run, or of a folder of it, as they lie elsewhere, by their names.

        Parts are listed only of those that are `wanted`. A lease is a file, too.
        """
        listed = self.objects.list(folder)
        found: dict[str, Layout] = {}
        for name in {each.removesuffix(FOLDER) if entry.is_folder else each for each, entry in listed.items()}:
            path, base, parts = f"{folder}/{name}" if folder else name, listed.get(name), Parts()
            if f"{name}{FOLDER}" in listed and wanted(path):
                parts = Parts.of(self.objects.list(f"{path}{FOLDER}"), base.size if base else 0)
                if not parts.parts:  # the plain object was written since the listing
                    base = self.objects.list(folder).get(name)
            if (base is not None and not base.is_folder) or parts.newest:
                found[path] = Layout(base, parts)
        return found

    def fetch(self, *, recording: bool = False) -> None:
        """Bring all files but blobs, and the recording only if it is wanted. Raises UnreachableError."""
        state, brought, layouts = self.state, dict[str, Copied](), dict[str, Layout]()
        for wanted in (_are_scores, _are_no_scores):  # trials are uploaded before their scores
            layouts = self.layouts(wanted=wanted)
            found = {name: layout for name, layout in layouts.items() if wanted(name)}
            if recording and wanted is _are_no_scores:
                found |= self.layouts(RECORDING)
            brought |= {name: self._bring(name, layout, state.files.get(name)) for name, layout in found.items()}
        held = newest(self.objects, LEASE) if any(name.startswith(f"{LEASE}.") for name in layouts) else None
        kept = {name: copied for name, copied in state.files.items() if name.startswith(f"{RECORDING}/")}
        for name in state.files.keys() - brought.keys() - kept.keys():
            (self.run / name).unlink(missing_ok=True)
        if brought or state.files or held:
            self.keep(State(None, held[1].until if held else 0.0, kept | brought))

    def fetch_some(self, *names: str) -> None:
        """Bring these files, those that there are. Raises UnreachableError."""
        folder = names[0].rpartition("/")[0]
        layouts, state = self.layouts(folder, wanted=names.__contains__), self.state
        held = newest(self.objects, LEASE) if any(name.startswith(f"{LEASE}.") for name in layouts) else None
        until = state.written_until if folder else held[1].until if held else 0.0
        brought = {name: self._bring(name, layouts[name], state.files.get(name)) for name in names if name in layouts}
        files = {**state.files, **brought}
        if files != state.files or until != state.written_until:
            self.keep(attrs.evolve(state, written_until=until, files=files))

    def goes_on(self, name: str, layout: Layout, size: int) -> bool:
        """Return whether so many bytes of a file are the same here and elsewhere, by the last of them."""
        begin = max(0, size - TAIL)
        if layout.parts.parts:
            last = layout.parts.parts[-1]
            there = self.objects.read(f"{name}{FOLDER}/{last.name}")[-TAIL:]
            return size == last.end and there == _range(self.run / name, size - len(there), size)
        return size <= layout.size and self.objects.read(name, begin, size) == _range(self.run / name, begin, size)

    def fetch_blob(self, name: str) -> None:
        """Bring a blob, whose content never changes. Raises UnreachableError."""
        if not (self.run / name).exists():
            self._download(name, self.run / name)

    def _bring(self, name: str, layout: Layout, copied: Copied | None) -> Copied:
        """Bring a file, or what is new of it, and return what was brought. Raises UnreachableError."""
        for _ in range(_TRIES):
            try:
                return self._bring_once(name, layout, copied)
            except FileNotFoundError:  # the run was settled since it was listed
                time.sleep(0.1)
                layout = self.layouts(name.rpartition("/")[0]).get(name, Layout(None, Parts()))
        if layout.size:
            raise UnreachableError(f"{self.objects.url}/{name} changes again and again while it is read; try it again")
        return Copied("", 0, 0)  # it was removed

    def _bring_once(self, name: str, layout: Layout, copied: Copied | None) -> Copied:
        path, base, parts = self.run / name, layout.base, layout.parts.parts
        version = base.version if base else ""
        here = path.stat().st_size if path.exists() else -1
        # Somebody has shortened or removed the copy, so that nothing of it can be gone on with.
        if copied is not None and here < copied.size:
            copied = None
        if not parts:
            if copied is not None and (copied.version, copied.generation) == (version, 0) and here == copied.size:
                return copied
            # The run was settled: its parts have become a plain object, of which what is here is the beginning.
            if copied is not None and copied.generation and self.goes_on(name, layout, copied.size):
                for begin in range(copied.size, layout.size, _BLOCK):
                    self._append(path, begin, self.objects.read(name, begin, min(begin + _BLOCK, layout.size)))
            else:
                self._download(name, path)
            return Copied(version, 0, path.stat().st_size)
        first, generation = parts[0], parts[0].generation
        goes_on = copied is not None and (
            copied.generation == generation
            or (copied.generation == 0 and copied.version == version and copied.size == first.origin > 0)
        )
        if copied is None or not goes_on:
            if first.origin:
                self._download(name, path)
                # The plain object may be longer by now: it was uploaded whole, and its parts are not removed yet.
                os.truncate(path, first.origin)
            else:
                with replacing(path, sync_name=False):
                    pass
            copied = Copied(version, generation, first.origin)
        end = copied.size
        for part in parts:
            if part.end > end:
                content = self.objects.read(f"{name}{FOLDER}/{part.name}")
                if len(content) != part.end - part.begin:
                    break  # it is being written, where that takes time
                self._append(path, end, content[end - part.begin :])
                end = part.end
        return Copied(version, generation, end)

    def _append(self, path: Path, end: int, content: bytes) -> None:
        with path.open("r+b") as file:
            # An append that was cut off may have left bytes after the end that is known.
            file.truncate(end)
            file.seek(end)
            file.write(content)

    def _download(self, name: str, path: Path) -> None:
        path.parent.mkdir(exist_ok=True)
        # Renamed when it is whole, so that a reader never sees a part of it.
        unfinished = path.with_name(f".{path.name}.fetched")
        try:
            self.objects.download(name, unfinished)
            unfinished.replace(path)
        finally:
            unfinished.unlink(missing_ok=True)


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
    return crc32(_range(path, max(0, end - TAIL), end))


FOLDER = ".parts"
_NAME = re.compile(r"(\d+)-(\d+)-(\d+)-(\d+)")
_WHOLE = re.compile(r"(\d+)-whole")


@attrs.frozen(order=True)
class Part:
    """One part of a file: bytes `begin` to `end`."""

    generation: int
    origin: int
    begin: int
    end: int

    @property
    def name(self) -> str:
        """The name of the object."""
        return f"{self.generation:04d}-{self.origin:012d}-{self.begin:012d}-{self.end:012d}"


@attrs.frozen
class Parts:
    """The parts of a file that count, in their order; none if the plain object is the file."""

    parts: Sequence[Part] = ()
    newest: int = 0

    @classmethod
    def of(cls, names: Iterable[str], base_size: int) -> Parts:
        """Choose the parts that count by the names of all, beside a plain object of so many bytes, 0 without one."""
        names = [*names]
        whole = max((int(match[1]) for name in names if (match := _WHOLE.fullmatch(name))), default=0)
        found = sorted(Part(*map(int, match.groups())) for name in names if (match := _NAME.fullmatch(name)))
        newest = max([whole, *(part.generation for part in found)])
        for generation, parts in groupby(reversed(found), lambda part: part.generation):
            chain = _chain([*parts][::-1])
            if generation > whole and chain and chain[0].begin == chain[0].origin <= max(base_size, 0):
                return cls(chain, newest)
        return cls((), newest)


def _chain(parts: Sequence[Part]) -> list[Part]:
    """Return the parts up to the first gap."""
    chain: list[Part] = []
    for part in parts:
        if chain and part.begin != chain[-1].end:
            break
        chain.append(part)
    return chain


def whole_name(generation: int) -> str:
    """Return the name of the object that says that the plain object is the file."""
    return f"{generation:04d}-whole"
