"""The objects under a URL, by fsspec: listed, read, written, created and removed, with errors that are explained."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import attrs
from fsspec.callbacks import Callback
from fsspec.core import url_to_fs
from fsspec.implementations.local import LocalFileSystem
from fsspec.implementations.memory import MemoryFileSystem
from fsspec.spec import AbstractFileSystem

from keval import RunError
from keval.errors import ConfigError

_IDENTITY = ("ETag", "etag", "md5Hash", "generation", "LastModified", "last_modified", "updated", "mtime", "created")
"""How file systems say that an object is another one than before, beside its size."""
# Signed URLs, which errors of clients name, have credentials in their query.
_QUERY = re.compile(r"\?\S+")
_MOST_SAID = 300
_BLOCKS_AT_ONCE = 2
"""Of a large file, where the file system would otherwise hold ten blocks of 50 MB in memory."""


class UnreachableError(RunError):
    """A file system did not do what it was asked for; the same may succeed later."""


@attrs.frozen
class Entry:
    """An object or a folder in a listing; `version` is another one when the object was written again."""

    size: int
    version: str
    is_folder: bool


class _Progress(Callback):  # type: ignore[misc]  # fsspec has no types
    """Tells of every block that was transferred."""

    def __init__(self, moved: Callable[[], None]) -> None:
        super().__init__()
        self._moved = moved

    def relative_update(self, inc: int = 1) -> None:
        self._moved()


@attrs.frozen
class Objects:
    """The objects under a URL, by their paths from there. Raises UnreachableError; may be used by several threads."""

    url: str
    _files: AbstractFileSystem
    _root: str

    @classmethod
    def at(cls, url: str) -> Objects:
        """Return the objects under a URL; nothing is asked for yet. Raises ConfigError."""
        scheme, parts = url.partition("://")[0], urlsplit(url)
        # A URL is printed and kept in files. `::` chains file systems, of which only the first one would be checked.
        if parts.password or parts.query or "::" in url:
            told = f"a {scheme}:// URL of results has no password, no query and no `::`"
            raise ConfigError(f"{told}; credentials come from the environment or the file system's own configuration")
        try:
            # Other processes write there, too, so that no listing holds.
            files, root = url_to_fs(url, use_listings_cache=False, skip_instance_cache=True)
        except ImportError as error:
            from keval.seams.installation import missing_module  # only who needs a remedy waits for it

            needed = missing_module(f"keval-remote[{scheme}]")
            raise ConfigError(f"{url}: {error}; it needs what it names, or {needed}") from error
        except ValueError as error:
            raise ConfigError(f"{url}: {error}; `fsspec.available_protocols()` lists what there is") from error
        if hasattr(files, "max_concurrency"):
            files.max_concurrency = _BLOCKS_AT_ONCE
        return cls(url.rstrip("/"), files, root.rstrip("/"))

    def under(self, path: str) -> Objects:
        """Return the objects under a path."""
        return attrs.evolve(self, url=f"{self.url}/{path}", root=self._path(path))

    def list(self, path: str = "") -> dict[str, Entry]:
        """Return what lies directly under a path, by name; nothing if there is no such path."""
        found: dict[str, Entry] = {}
        where = self._path(path)
        with self._explained():
            try:
                listed: list[dict[str, Any]] = self._files.ls(where, detail=True)
            except FileNotFoundError:
                return found
        for info in listed:
            path_there = str(info["name"]).strip("/")
            name = path_there.rpartition("/")[2]
            is_link = info["type"] == "link" or info.get("islink")  # which may lead anywhere
            # Names become paths on this machine.
            if path_there != where.strip("/") and name not in ("", ".", "..") and not is_link and "\0" not in name:
                version = " ".join(str(info[key]) for key in _IDENTITY if info.get(key) is not None)
                is_folder, size = info["type"] == "directory", int(info.get("size") or 0)
                found[name] = Entry(size, f"{version} {size}", is_folder)
        return found

    def read(self, path: str, start: int | None = None, end: int | None = None) -> bytes:
        """Return the content of an object, or a range of it. Raises FileNotFoundError."""
        with self._explained():
            content: bytes = self._files.cat_file(self._path(path), start=start, end=end)
            return content

    def download(self, path: str, to: Path) -> None:
        """Write an object to a file, block by block. Raises FileNotFoundError."""
        with self._explained():
            self._files.get_file(self._path(path), str(to))

    def write(self, path: str, content: bytes) -> None:
        """Write an object, whole or not at all."""
        self._replacing(path, lambda where: self._files.pipe_file(where, content))

    def upload(self, path: str, file: Path, moved: Callable[[], None]) -> None:
        """Write a file to an object, block by block, each of which is told."""
        self._replacing(path, lambda where: self._files.put_file(str(file), where, callback=_Progress(moved)))

    def create(self, path: str, content: bytes) -> bool:
        """Write an object that must not exist; returns whether two who do so at once cannot both succeed.

        Raises FileExistsError.
        """
        if isinstance(self._files, LocalFileSystem | MemoryFileSystem):

            def write(where: str) -> None:
                with self._files.open(where, "xb") as file:
                    file.write(content)

            self._writing(path, write)
            return True

        def create(where: str) -> None:
            self._files.pipe_file(where, content, mode="create")

        try:
            self._writing(path, create)
        except UnreachableError:  # or a client or server that refuses the condition
            self.write(path, content)
            return False
        if self._files.async_impl:  # others look first, which is no condition
            try:
                self._writing(path, create)
            except FileExistsError:
                return True
        return False  # a server that does not know the condition

    def remove(self, paths: Sequence[str]) -> None:
        """Remove objects, at most a thousand with each request where the file system can; some may be gone already."""
        with self._explained():
            # The stores whose clients are asynchronous can remove many objects with one request.
            if self._files.async_impl and paths:
                self._files.rm([self._path(path) for path in paths])
                return
            for path in paths:
                if self._files.exists(self._path(path)):
                    self._files.rm_file(self._path(path))

    def remove_all(self) -> None:
        """Remove everything under the URL."""
        with self._explained():
            if self._files.exists(self._root):
                self._files.rm(self._root, recursive=True)

    def _replacing(self, path: str, write: Callable[[str], None]) -> None:
        # Object stores show an object once it is whole; a file would be seen while it is written.
        if not isinstance(self._files, LocalFileSystem):
            self._writing(path, write)
            return
        folder, _, name = path.rpartition("/")
        unfinished = f"{folder}/.{name}.unfinished" if folder else f".{name}.unfinished"
        self._writing(unfinished, write)
        self._writing(path, lambda where: self._files.mv(self._path(unfinished), where))

    def _writing(self, path: str, write: Callable[[str], None]) -> None:
        where = self._path(path)
        with self._explained():
            try:
                write(where)
            except FileNotFoundError as error:
                if self._files.async_impl:  # an object store, which has no folders
                    raise UnreachableError(f"{self.url} cannot be written: {error}; make the bucket first") from error
                self._files.makedirs(where.rpartition("/")[0], exist_ok=True)
                write(where)

    def _path(self, path: str) -> str:
        return f"{self._root}/{path}" if path else self._root

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except (FileNotFoundError, FileExistsError, UnreachableError):
            raise
        except Exception as error:
            told = _QUERY.sub("?…", " ".join(str(error).split()))[:_MOST_SAID]
            remedy = "check the network, the credentials and the rights"
            raise UnreachableError(f"{self.url}: {type(error).__name__}: {told}; {remedy}") from error
