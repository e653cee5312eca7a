"""The mirror of a run that is written: a thread that uploads what is new, while the run goes on.

Files that only grow are uploaded in parts; all others whole, when they were written. What lines refer to is uploaded
before them, and scores after their trials, so that whoever reads at any moment sees a run as it was a little earlier.
At the end growing files are uploaded whole, and their parts removed.
"""

from __future__ import annotations

import fnmatch
import logging
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import attrs

from keval.errors import ConfigError
from keval_remote.copies import CURRENT, PARTS, RECORDING, Copied, RunCopy, names_in, part_name, tail
from keval_remote.lease import Lease
from keval_remote.objects import Entry, UnreachableError

_LOG = logging.getLogger(__name__)
_ORDER = (".scores.*.jsonl", "summary.json", "scores.jsonl", "trials.jsonl", f"{RECORDING}/*")
"""In which order files are looked at, all others last; they are uploaded the other way round."""
_GROWING = ("trials.jsonl", ".scores.*.jsonl", f"{RECORDING}/*")
_LEFT_OUT = ("live.json", "reviews.jsonl", "draws.jsonl", "*.index")
"""What tells only of this moment, is mirrored when it is written, or is derived from other files."""
_BLOBS = "blobs"
_AT_ONCE = 8
_LONGEST_PAUSE = 60.0
_LOOKS = 1.0
"""Seconds between two looks at the files."""


@attrs.frozen
class Settings:
    """How results are mirrored: times in seconds, sizes in bytes."""

    part_seconds: float = 10.0
    part_bytes: int = 8 << 20
    lease_seconds: float = 60.0
    end_seconds: float = 60.0

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> Settings:
        """Read `KEVAL_REMOTE_…` of an environment. Raises ConfigError."""
        usual = cls()
        return cls(
            part_seconds=_number(environ, "KEVAL_REMOTE_PART_SECONDS", usual.part_seconds),
            part_bytes=int(_number(environ, "KEVAL_REMOTE_PART_MB", usual.part_bytes / (1 << 20)) * (1 << 20)),
            lease_seconds=_number(environ, "KEVAL_REMOTE_LEASE_SECONDS", usual.lease_seconds),
            end_seconds=_number(environ, "KEVAL_REMOTE_END_SECONDS", usual.end_seconds),
        )


def _number(environ: Mapping[str, str], name: str, usual: float) -> float:
    try:
        found = float(environ.get(name) or usual)
    except ValueError:
        found = 0.0
    if not 0 < found < 1e9:
        raise ConfigError(f"{name} is {environ[name]!r}; give a number greater than 0")
    return found


class _Stamp(NamedTuple):
    """A file as it was last written."""

    inode: int
    size: int
    changed: int


@attrs.frozen
class _Grown:
    """How much of a growing file was uploaded, with a checksum of its end; in parts, if they have a generation.

    `counts` says whether the generation is the current one.
    """

    generation: str = ""
    size: int = 0
    tail: int = 0
    counts: bool = False


_NOTHING = _Grown()


def _generation(base: int) -> str:
    """Return the name of a new generation, which goes on after so many bytes of the plain object."""
    return f"{base:012d}-{secrets.token_hex(4)}"


@attrs.define(eq=False)
class Mirror:
    """Uploads what is written to a run. `problem` is why something could not be uploaded yet."""

    _copy: RunCopy
    _lease: Lease
    _settings: Settings
    _lost: Callable[[], object]
    problem: str = attrs.field(default="", init=False)
    is_done: bool = attrs.field(default=False, init=False)
    _whole: dict[str, _Stamp | None] = attrs.field(factory=dict, init=False)
    _grown: dict[str, _Grown] = attrs.field(factory=dict, init=False)
    _folders: set[str] = attrs.field(factory=set, init=False)
    _since: float = attrs.field(factory=time.monotonic, init=False)
    _blobs: set[str] = attrs.field(factory=set, init=False)
    _blobs_stamp: int = attrs.field(default=0, init=False)
    _failures: int = attrs.field(default=0, init=False)
    _moved_at: float = attrs.field(factory=time.monotonic, init=False)
    _ending: threading.Event = attrs.field(factory=threading.Event, init=False)
    _given_up: threading.Event = attrs.field(factory=threading.Event, init=False)
    _thread: threading.Thread | None = attrs.field(default=None, init=False)

    def begin(self, alike: Mapping[str, Copied]) -> None:
        """Begin to upload what lies there otherwise than here: all but the files `alike`. Raises UnreachableError."""
        for name, entry in self._listed().items():
            path, known = self._copy.run / name, alike.get(name)
            if entry is None:
                self._folders.add(name)
            if _is_growing(name):
                self._grown[name] = _NOTHING
                if known is not None and path.exists():
                    self._grown[name] = _Grown(
                        known.generation, known.size, tail(path, known.size), bool(known.generation)
                    )
            if _is_mirrored(name) and known is not None and not known.generation:
                self._whole[name] = _stamp(path)
        self._blobs = {*self._copy.objects.list(_BLOBS)}
        self._lease.keep(self._lost)
        self._thread = threading.Thread(target=self._work, name="keval mirror", daemon=True)
        self._thread.start()

    def end(self) -> bool:
        """Upload all that is left, and return whether that was done; waits as long as something is transferred."""
        assert self._thread is not None  # noqa: S101 - for mypy: it was begun
        self._moved_at = time.monotonic()
        self._ending.set()
        while self._thread.is_alive():
            self._thread.join(0.05)
            if time.monotonic() - self._moved_at > self._settings.end_seconds:
                self._given_up.set()
                break
        return self.is_done

    def copied(self) -> dict[str, Copied]:
        """Return what is here as it lies elsewhere, after the end. Raises UnreachableError."""
        found: dict[str, Copied] = {}
        for name, entry in self._listed().items():
            stamp = _stamp(self._copy.run / name)
            if entry is not None and stamp is not None and entry.size == stamp.size and _is_mirrored(name):
                found[name] = Copied(entry.version, "", stamp.size)
        return found

    def _listed(self) -> dict[str, Entry | None]:
        """Return the files that lie elsewhere; `None` stands for one that has parts."""
        found = dict[str, Entry | None]()
        for folder in ("", f"{RECORDING}/"):
            listed = self._copy.objects.list(folder.rstrip("/"))
            found |= {f"{folder}{name}": listed.get(name) for name in names_in(listed)}
            found |= {f"{folder}{name}": None for name in names_in(listed) if f"{name}{PARTS}" in listed}
        return found

    def _work(self) -> None:
        pause = 0.0
        while self._lease.lost_to is None and not self._given_up.is_set():
            # The pause ends early with what can come next: the end of the run, and after that the loss of patience.
            (self._given_up if self._ending.is_set() else self._ending).wait(pause)
            is_last = self._ending.is_set()
            try:
                if self._lease.assure():
                    self._upload(all_of_it=is_last)
                    self.is_done = is_last and self._lease.lost_to is None
            except Exception as error:  # noqa: BLE001 - the last seam of a thread; the run goes on
                pause = self._failed(error)
                continue
            if self._failures:
                _LOG.warning("%s: uploads work again", self._copy.objects.url)
            self._failures, self.problem = 0, ""
            if self.is_done:
                return
            pause = min(_LOOKS, self._settings.part_seconds)

    def _failed(self, error: Exception) -> float:
        """Tell of a failure, the first time, and return how long to wait."""
        told = str(error) if isinstance(error, UnreachableError) else f"{type(error).__name__}: {error}"
        self.problem = told
        if not self._failures:
            _LOG.warning("%s; the run goes on, and what it writes is uploaded when that works again", told)
        self._failures += 1
        return min(_LOOKS if self._ending.is_set() else _LONGEST_PAUSE, 0.25 * 2.0**self._failures)

    def _upload(self, *, all_of_it: bool) -> None:
        """Upload what is new, if it is due; at the end all of it, with growing files in place of their parts."""
        # Lines are looked at before what they refer to, which is therefore found, and uploaded before them.
        found = [(name, _stamp(self._copy.run / name)) for name in sorted(_names(self._copy.run), key=_rank)]
        stamps = {name: stamp for name, stamp in found if stamp is not None}
        if not (self._is_due(stamps) or all_of_it):
            return
        self._upload_blobs(all_of_them=all_of_it)
        for name, stamp in reversed(stamps.items()):
            try:
                self._mirror(name, stamp, all_of_it=all_of_it)
            except (FileNotFoundError, UnreachableError):
                if (self._copy.run / name).exists():  # else it is removed below
                    raise
        for name in [name for name in {*self._whole, *self._grown} if not (self._copy.run / name).exists()]:
            self._remove(name)

    def _is_due(self, stamps: Mapping[str, _Stamp]) -> bool:
        """Return whether a file was written anew, or a part is full or old enough; then all files are brought there."""
        now, new = time.monotonic(), {name: stamp for name, stamp in stamps.items() if self._whole.get(name) != stamp}
        added = [stamp.size - self._grown.get(name, _NOTHING).size for name, stamp in new.items() if _is_growing(name)]
        if not any(added):
            self._since = now
        is_due = bool(
            len(new) > len(added)
            or {*self._whole, *self._grown} - stamps.keys()
            or now >= self._since + self._settings.part_seconds
            or any(size < 0 or size >= self._settings.part_bytes for size in added)
        )
        if is_due:
            self._since = now
        return is_due

    def _mirror(self, name: str, stamp: _Stamp, *, all_of_it: bool) -> None:
        if _is_growing(name):
            if not all_of_it or self._grown.get(name, _NOTHING).generation:  # else it is uploaded whole at once
                self._grow(name, stamp)
            if all_of_it:
                self._settle(name)
        elif self._whole.get(name) != stamp and _stamp(self._copy.run / name) == stamp:
            # One that has changed since it was looked at may refer to what is not uploaded yet; it is taken next time.
            self._put(name)
            self._whole[name] = stamp

    def _upload_blobs(self, *, all_of_them: bool) -> None:
        folder = self._copy.run / _BLOBS
        try:
            changed = folder.stat().st_mtime_ns
        except FileNotFoundError:
            return
        # A new file changes the time of its folder; to list thousands of blobs every second would cost more.
        if changed == self._blobs_stamp and not all_of_them:
            return
        new = [path.name for path in folder.iterdir() if path.name not in self._blobs and path.name[0] != "."]
        with ThreadPoolExecutor(_AT_ONCE) as threads:
            for name in threads.map(self._put_blob, new):
                self._blobs.add(name)
        self._blobs_stamp = changed

    def _put_blob(self, name: str) -> str:
        self._put(f"{_BLOBS}/{name}")
        return name

    def _grow(self, name: str, stamp: _Stamp) -> None:
        """Upload parts of a growing file; one that is another file than before begins a generation of its own."""
        path, known = self._copy.run / name, self._grown.get(name, _NOTHING)
        # A file that was written anew may be longer than before, which only its content tells.
        is_other = stamp.size < known.size or tail(path, known.size) != known.tail
        if is_other:
            known = _Grown(_generation(0))
        for content in self._pieces(path, known.size, stamp.size):
            if not known.generation:
                known = attrs.evolve(known, generation=_generation(known.size))
            end = known.size + len(content)
            self._write(f"{name}{PARTS}/{known.generation}/{part_name(known.size, end)}", content)
            # After each part, so that none is uploaded twice when the next one fails.
            known = self._grown[name] = attrs.evolve(known, size=end, tail=tail(path, end))
        if known.generation:
            self._folders.add(name)
            if not known.counts:
                self._write(f"{name}{PARTS}/{CURRENT}", known.generation.encode())
            self._grown[name] = attrs.evolve(known, counts=True)

    def _pieces(self, path: Path, begin: int, end: int) -> Iterator[bytes]:
        """Yield what is uploaded as a part each: whole lines, where a file has lines."""
        while begin < end:
            with path.open("rb") as file:
                file.seek(begin)
                content = file.read(min(self._settings.part_bytes, end - begin))
                if path.suffix == ".jsonl":
                    lines = content[: content.rfind(b"\n") + 1]
                    content = lines or content + file.readline(end - begin - len(content))
                    if not content.endswith(b"\n"):
                        return
            yield content
            begin += len(content)

    def _settle(self, name: str) -> None:
        """Upload a growing file whole, and remove its parts."""
        stamp = _stamp(self._copy.run / name)
        if self._whole.get(name) != stamp:
            self._put(name)
            self._whole[name] = stamp
        self._remove_parts(name)

    def _remove(self, name: str) -> None:
        """Remove a file that is gone here."""
        self._copy.objects.remove([name])
        self._remove_parts(name)
        self._whole.pop(name, None)
        self._grown.pop(name, None)

    def _remove_parts(self, name: str) -> None:
        if name in self._folders and self._lease.assure():
            # Without it the plain object counts, whatever of the parts is left.
            self._copy.objects.remove([f"{name}{PARTS}/{CURRENT}"])
            self._copy.objects.under(f"{name}{PARTS}").remove_all()
            self._folders.remove(name)

    def _write(self, name: str, content: bytes) -> None:
        if self._lease.assure():
            self._copy.objects.write(name, content)
            self._moved()

    def _put(self, name: str) -> None:
        if self._lease.assure():
            self._copy.objects.upload(name, self._copy.run / name, self._moved)
            self._moved()

    def _moved(self) -> None:
        self._moved_at = time.monotonic()


def _names(run: Path) -> list[str]:
    """Return the files of a run that are mirrored, but its blobs."""
    found = []
    for folder, prefix in ((run, ""), (run / RECORDING, f"{RECORDING}/")):
        if folder.is_dir():
            found += [f"{prefix}{path.name}" for path in folder.iterdir() if path.is_file()]
    return [name for name in found if _is_mirrored(name)]


def _is_mirrored(name: str) -> bool:
    if name.rpartition("/")[2].startswith("."):
        return fnmatch.fnmatch(name, ".scores.*.jsonl")
    return not any(fnmatch.fnmatch(name, pattern) for pattern in _LEFT_OUT)


def _is_growing(name: str) -> bool:
    return any(fnmatch.fnmatch(name, pattern) for pattern in _GROWING)


def _rank(name: str) -> int:
    return next((rank for rank, pattern in enumerate(_ORDER) if fnmatch.fnmatch(name, pattern)), len(_ORDER))


def _stamp(path: Path) -> _Stamp | None:
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return _Stamp(status.st_ino, status.st_size, status.st_mtime_ns)
