"""The mirror of results that lie at a URL: the plugin of keval's seam for results that lie elsewhere."""

from __future__ import annotations

import hashlib
import logging
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import attrs

from keval import Run, RunError
from keval.errors import OutageError
from keval.files import read_kept, replacing
from keval.seams.results import MARKER
from keval_remote.copies import LEASE, RunCopy, State
from keval_remote.lease import HeldError, Lease, newest
from keval_remote.mirror import Mirror, Settings
from keval_remote.objects import Objects, UnreachableError

_LOG = logging.getLogger(__name__)
_LISTED = ("manifest.json", "summary.json")
_FRESH = 5.0
"""Seconds for which what lies elsewhere is not looked at again."""
_AT_ONCE = 16
_MOST_OF_URL = 1 << 16
_PATIENCE = 10.0
"""Seconds to wait for others who write to the same file."""
_AWAY = "move that folder away to read what lies there"


@attrs.define(eq=False)
class Remote:
    """Mirrors results by fsspec. One object serves a process; what it remembers is when it looked at what."""

    _looked: dict[Path, float] = attrs.field(factory=dict, init=False)
    _blobs: dict[Path, set[str]] = attrs.field(factory=dict, init=False)
    _objects: dict[Path, Objects] = attrs.field(factory=dict, init=False)

    def folder(self, url: str) -> Path:
        """Return the folder in which the results at a URL are worked on. Raises ConfigError, RunError."""
        objects = Objects.at(url)
        folder = cache_folder(objects.url)
        if not (folder / MARKER).exists():
            folder.mkdir(parents=True, exist_ok=True)
            with replacing(folder / MARKER) as file:
                file.write(f"{objects.url}\n".encode())
        return folder

    def url(self, path: Path) -> str:
        """Return where a folder of results, or a run of it, lies. Raises RunError: others have made the folder."""
        results = path if (path / MARKER).exists() else path.parent.parent
        try:
            url = read_kept(results / MARKER, most_bytes=_MOST_OF_URL).decode("utf-8", "replace").strip()
        except OSError as error:
            raise RunError(f"{results / MARKER} cannot be read: {error.strerror}; remove it") from error
        # A folder from somebody else could have keval ask any address.
        if cache_folder(url).resolve() != results.resolve():
            told = f"{results / MARKER} says that these results lie at {url!r}, and the folder is not keval's own copy"
            raise RunError(f"{told}: remove that file to read what is here, or name the URL itself")
        return url if results == path else f"{url}/{path.parent.name}/{path.name}"

    def check(self, results: Path) -> str:
        """Write an object and remove it; returns whether two writers are refused for certain. Raises RunError."""
        objects, name = self._at(results), f".keval-check-{os.getpid()}-{time.time_ns()}"
        is_sure = objects.create(name, b"")
        objects.remove([name])
        return "can be written" if is_sure else "can be written, and refuses a second writer only after a while"

    def find(self, results: Path, run: str = "") -> None:
        """Bring manifests and summaries of runs here, and set copies of runs aside that are gone. Raises RunError."""
        self._look(results / run, lambda: self._find(results, run))

    def _find(self, results: Path, run: str) -> None:
        objects = self._at(results)
        with ThreadPoolExecutor(_AT_ONCE) as threads:
            evaluations = [name for name, entry in objects.list().items() if entry.is_folder]
            found = [
                results / evaluation / name
                for evaluation, listed in zip(evaluations, threads.map(objects.list, evaluations), strict=True)
                for name, entry in listed.items()
                if entry.is_folder
            ]
            for gone in {path.parent for path in results.glob(f"*/*/{_LISTED[0]}")} - {*found}:
                # A run that is newer here may be one that was never uploaded.
                if (state := self._copy(gone).state).files and not state.is_newer:
                    _set_aside(results, gone)
            wanted = sorted(path for path in found if path.name.startswith(run) or run == "latest")
            if run == "latest":
                wanted = sorted(wanted, key=lambda path: path.name)[-1:]
            list(threads.map(self._list, wanted))

    def fetch(self, run: Path, file: str = "") -> bool:
        """Bring a run here, but for blobs and recording, or one file of these; see `ResultsMirror.fetch`."""
        copy = self._copy(run)
        if copy.state.is_newer:
            return self._lacks(copy)
        if file.startswith("blobs/"):
            self._fetch_blob(copy, file)
        else:
            self._look(run / file, lambda: self._fetch(copy, file))
        return False

    @contextmanager
    def writing(self, run: Path, lost: Callable[[], object]) -> Iterator[None]:
        """Hold the lease of a run and mirror what is written to it; see `ResultsMirror.writing`."""
        copy, settings = self._copy(run), Settings.of(os.environ)
        mirror, lease = self._begin(copy, settings, lost)
        try:
            yield
        except BaseException as error:
            if problem := self._end(copy, mirror, lease):
                # That the lease was lost is why the block was ended; all else is only told beside what it raised.
                if lease.lost_to is not None:
                    raise problem from error
                _LOG.warning("%s", problem)
            raise
        if problem := self._end(copy, mirror, lease):
            raise problem

    def is_written(self, run: Path) -> bool:
        """Return whether another machine had the lease of a run when that was looked at last."""
        state = self._copy(run).state
        return not state.is_newer and state.written_until > time.time()

    @contextmanager
    def adding(self, file: Path) -> Iterator[None]:
        """Hold a lease of one file, which is brought here before and uploaded afterwards. Raises RunError."""
        copy, seconds = self._copy(file.parent), Settings.of(os.environ).lease_seconds
        lease = Lease.acquire(copy.objects, f".{file.stem}", seconds, patience=_PATIENCE)
        try:
            with copy.locked():
                copy.fetch_some(file.name)
            yield
            copy.objects.upload(file.name, file, lambda: None)
        finally:
            lease.release()

    def _begin(self, copy: RunCopy, settings: Settings, lost: Callable[[], object]) -> tuple[Mirror, Lease]:
        """Take the lease of a run, bring the run here if it is newer there, and begin to mirror it."""
        with copy.locked():
            state = copy.state
            try:
                lease = Lease.acquire(copy.objects, LEASE, settings.lease_seconds, state.token)
            except HeldError as error:
                if not state.is_newer:
                    raise
                raise HeldError(f"{error}; what it wrote is in {copy.run}: {_AWAY}") from error
            try:
                if (before := lease.taken_from) is not None:
                    _LOG.warning("%s was written by %s; its lease is taken over", copy.objects.url, before.told)
                if not state.is_newer:
                    copy.fetch(recording=True)
                # Nobody knows what a process that was killed had uploaded, so every file is compared again.
                alike = {} if state.is_newer else copy.state.files
                # Kept before anything is written here: a process that is killed from now on leaves a run that is newer.
                copy.keep(State(lease.token, files=alike))
                mirror = Mirror(copy, lease, settings, lost)
                mirror.begin(alike)
            except BaseException:
                with suppress(UnreachableError):  # it is over soon
                    lease.release()
                copy.keep(state)
                raise
        return mirror, lease

    def _end(self, copy: RunCopy, mirror: Mirror, lease: Lease) -> RunError | None:
        """Upload what is left, and give the lease back; returns what went wrong."""
        is_done = mirror.end()
        lease.stop()
        url = copy.objects.url
        if lease.lost_to is not None:
            told = f"{url} is written by {lease.lost_to}, as this process could not renew its lease in time"
            return RunError(f"{told}; what it wrote is in {copy.run}: {_AWAY}")
        try:
            # A run that could not begin was removed here.
            if is_done and not copy.run.exists():
                copy.objects.remove_all()
                return None
            if is_done:
                copied = mirror.copied()
                with copy.locked():
                    copy.keep(State(files=copied))
                lease.release()
                return None
        except UnreachableError as error:
            mirror.problem = str(error)
        told = f"the run is whole in {copy.run} and not in {url}: {mirror.problem or 'it took too long'}"
        return OutageError(f"{told}; `keval report {url}` uploads the rest when that works again")

    def _lacks(self, copy: RunCopy) -> bool:
        """Return whether no process writes to a run that is newer here than elsewhere, and that can be reached."""
        if Run(copy.run).is_locked or self._is_fresh(copy.run):
            return False
        try:
            newest(copy.objects, LEASE)
        except UnreachableError as error:
            _LOG.warning("%s; what is here is newer, and is not brought there yet", error)
            return False
        return True

    def _list(self, run: Path) -> None:
        copy = self._copy(run)
        if not copy.state.is_newer:
            with copy.locked():
                copy.fetch_some(*_LISTED)

    def _fetch(self, copy: RunCopy, file: str) -> None:
        with copy.locked():
            if not copy.state.is_newer:
                copy.fetch_some(file) if file else copy.fetch()

    def _fetch_blob(self, copy: RunCopy, file: str) -> None:
        """Bring a blob, if there is one; all that there are were listed once."""
        name = file.removeprefix("blobs/")
        if name not in self._blobs.setdefault(copy.run, set()):
            self._look(copy.run / "blobs", lambda: self._blobs.update({copy.run: {*copy.objects.list("blobs")}}))
        if name in self._blobs[copy.run]:
            with copy.locked():
                copy.fetch_blob(file)

    def _look(self, path: Path, look: Callable[[], None]) -> None:
        """Look at something unless that was done a moment ago; what fails was not done."""
        if not self._is_fresh(path):
            try:
                look()
            except BaseException:
                self._looked.pop(path, None)
                raise

    def _is_fresh(self, path: Path) -> bool:
        """Return whether something was looked at a moment ago; else note that it is looked at now."""
        now, before = time.monotonic(), self._looked.get(path)
        if before is not None and now - before < _FRESH:
            return True
        self._looked[path] = now
        return False

    def _copy(self, run: Path) -> RunCopy:
        return RunCopy(run, self._at(run.parent.parent).under(f"{run.parent.name}/{run.name}"))

    def _at(self, results: Path) -> Objects:
        if results not in self._objects:
            self._objects[results] = Objects.at(self.url(results))
        return self._objects[results]


def _set_aside(results: Path, run: Path) -> None:
    """Move the copy of a run to where no command looks for runs: it may be the last one."""
    aside = results / ".gone" / run.parent.name / run.name
    aside.parent.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(aside, ignore_errors=True)
    run.rename(aside)


def cache_folder(url: str) -> Path:
    """Return the folder for the results at a URL, under `KEVAL_CACHE`, else under the user's folder for caches."""
    cache = os.environ.get("KEVAL_CACHE")
    usual = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "keval"
    slug = re.sub(r"[^\w.]+", "-", url)[:60].strip("-")
    return (Path(cache) if cache else usual) / f"{slug}-{hashlib.sha256(url.encode()).hexdigest()[:8]}"
