"""Where `keval init` works: the folder that it writes to, and the one that the user stands in."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import attrs

from keval.errors import ConfigError


@attrs.frozen
class Workplace:
    """The `folder` of the config, and `here`, which paths that the user names are relative to. Both are absolute."""

    folder: Path
    here: Path

    @classmethod
    def of(cls, folder: Path) -> Workplace:
        """Return the workplace for a folder, which need not exist."""
        return cls(folder.resolve(), Path.cwd())

    @contextmanager
    def made(self) -> Iterator[None]:
        """Make the folder, for a block; if that fails, remove what was made of it, as far as it is empty."""
        missing = [each for each in (self.folder, *self.folder.parents) if not each.exists()]
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            yield
        except BaseException:
            with suppress(OSError):  # somebody else has put something there
                for folder in missing:
                    folder.rmdir()
            raise

    @property
    def in_ours(self) -> bool:
        """Whether the folder is in keval's own repository, where no evaluation of a user belongs."""
        own = ("core/keval/__init__.py", "plugins/start/src/keval_start")
        return any(all((each / path).exists() for path in own) for each in (self.folder, *self.folder.parents))

    @property
    def repository(self) -> Path:
        """The root of the Git repository that the folder is in; without one, the folder."""
        return next((each for each in (self.folder, *self.folder.parents) if (each / ".git").exists()), self.folder)

    @property
    def workflow(self) -> Path:
        """The path of the workflow, which GitHub looks for at the root of a repository."""
        name = "keval" if self.folder == self.repository else f"keval-{self.folder.name}"
        return self.repository / ".github" / "workflows" / f"{name}.yaml"

    def check_absent(self, *paths: Path) -> None:
        """Raise ConfigError that names every one of these files that exists already."""
        # A link that leads nowhere is there, too.
        there = [self.shown(path) for path in paths if os.path.lexists(path)]
        if there:
            exist, them = ("exists", "it") if len(there) == 1 else ("exist", "them")
            remedy = f"move {them} away, or name another folder: `keval init DIR`"
            raise ConfigError(f"{' and '.join(there)} {exist} already, and nothing is overwritten; {remedy}")

    def written(self, path: Path) -> str:
        """Return a path that the user named as the config has it: relative to its folder."""
        return Path(os.path.relpath(self.here / path, self.folder)).as_posix()

    def shown(self, path: Path) -> str:
        """Return a path as the user would type it."""
        return Path(os.path.relpath(path, self.here)).as_posix()

    def has(self, text: str) -> bool:
        """Return whether a text is the relative path of something that exists where the user stands."""
        return bool(text) and not text.startswith("-") and not os.path.isabs(text) and os.path.lexists(self.here / text)
