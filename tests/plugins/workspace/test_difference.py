"""The difference of two folders, which Git takes as a patch."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import tempfile
import time
from difflib import SequenceMatcher
from pathlib import Path
from typing import TypeAlias

import pytest
from hypothesis import given, settings, strategies as st

from keval_workspace.difference import Version, difference
from keval_workspace.folder import Folder
from tests.plugins.workspace.attempts import attempt

NAMES = st.sampled_from(["a", "b c", "d/e.py", "d/f g/h", "é.txt", 'q"uote', "tab\there", "-x", "new\nline", "d/ü"])
LINES = st.lists(st.sampled_from(["", "one", "two", "three", "\ttabbed", "cr\r", "\x0c", "é", "+plus", "-minus"]))
TEXTS = st.builds(lambda lines, end: "\n".join(lines) + end, LINES, st.sampled_from(["", "\n"]))
Content: TypeAlias = tuple[str, str]
"""What a file is: `file`, `program` or `link`, and its content or target."""
CONTENTS = st.one_of(
    st.tuples(st.sampled_from(["file", "program"]), TEXTS),
    st.tuples(st.just("link"), st.sampled_from(["a", "/nowhere"])),
)
TREES = st.dictionaries(NAMES, CONTENTS, max_size=6)


def make(folder: Path, tree: dict[str, Content]) -> None:
    for name, (kind, text) in tree.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if kind == "link":
            path.symlink_to(text)
        else:
            path.write_bytes(text.encode())
            path.chmod(0o755 if kind == "program" else 0o644)


def read(folder: Path) -> dict[str, tuple[str, bytes]]:
    found = {}
    for path in sorted(folder.rglob("*")):
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode):
            found[str(path.relative_to(folder))] = ("link", os.fsencode(os.readlink(path)))
        elif stat.S_ISREG(mode):
            kind = "program" if mode & 0o100 else "file"
            found[str(path.relative_to(folder))] = (kind, path.read_bytes())
    return found


@pytest.mark.slow
@settings(max_examples=30, deadline=None)
@given(before=TREES, after=TREES)
def test_git_makes_the_end_out_of_the_start_and_the_diff(before: dict[str, Content], after: dict[str, Content]) -> None:
    with tempfile.TemporaryDirectory() as name:
        source, patched, wanted = (Path(name) / each for each in ("source", "patched", "wanted"))
        source.mkdir()
        wanted.mkdir()
        make(source, before)
        make(wanted, after)
        shutil.copytree(source, patched, symlinks=True)

        def work(folder: Path) -> None:
            for path in folder.iterdir():
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
            make(folder, after)

        end = attempt(Folder(copy=source), work)
        if end.diff:
            command = ["git", "apply", "--whitespace=nowarn", "--unidiff-zero", "-"]
            env = {**os.environ, "GIT_CEILING_DIRECTORIES": name}
            done = subprocess.run(
                command, cwd=patched, env=env, input=end.diff.encode(), capture_output=True, check=False
            )
            assert (0, b"") == (done.returncode, done.stderr), end.diff

        assert read(wanted) == read(patched)
        assert {*read(source).items()} ^ {*read(wanted).items()} == set() or end.changes


def test_texts_with_too_many_equal_lines_are_told_in_a_moment() -> None:
    before = "".join(f"{number % 211}\n" for number in range(40_000))
    after = "".join(f"{number * 7 % 211}\n" for number in range(40_000))
    folder = Folder(files={"a": f"head\n{before}tail\n"})
    began = time.process_time()

    end = attempt(folder, lambda at: (at / "a").write_text(f"head\n{after}tail\n"))

    assert time.process_time() - began < 5
    assert "@@ -1,40002 +1,40002 @@\n head\n 0\n-1\n" in end.diff


def test_texts_with_very_many_blocks_of_equal_lines_are_told_in_a_moment() -> None:
    before, after = ("".join(f"{n % 52}\n{side}{n}\n" for n in range(4_000)) for side in "ab")
    folder = Folder(files={"x": before})
    began = time.process_time()

    end = attempt(folder, lambda at: (at / "x").write_text(after))

    assert time.process_time() - began < 5
    assert "@@ -1,8000 +1,8000 @@\n 0\n-a0\n+b0\n 1\n-a1\n+b1\n 2\n" in end.diff


def test_only_lines_between_the_equal_ends_of_two_texts_are_indexed(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [f"{number}\n".encode() for number in range(100)]
    old, new = (Version(0o100644, b"".join(each)) for each in (lines, [*lines[:40], b"more\n", *lines[40:]]))
    indexed, index = list[int](), SequenceMatcher.set_seq2

    def counted(self: SequenceMatcher[str], b: str) -> None:
        indexed.append(len(b))
        index(self, b)

    monkeypatch.setattr(SequenceMatcher, "set_seq2", counted)

    assert difference("a", old, new).endswith("@@ -38,6 +38,7 @@\n 37\n 38\n 39\n+more\n 40\n 41\n 42\n")
    assert 1 == sum(indexed)
