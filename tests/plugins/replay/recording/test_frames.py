"""The file of a recording: what is written is read again, and damage is named by its place."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from keval.errors import RunError
from keval_replay.frames import FrameFile, FrameKey, Frames, encoded_frame, traffic_file

FIRST, SECOND = FrameKey("agent", trial="a/none/q1/1"), FrameKey("judge", trial="a/none/q1/1", judge="j", repetition=2)

PLACES = (" is not the file of a recording", ": the frame at byte 0 is damaged")


def written(folder: Path, *frames: bytes) -> Path:
    path = traffic_file(folder)
    with FrameFile(path) as file:
        for frame in frames:
            file.write(frame)
        file.append(b"")
    return path


def test_a_frame_is_read_by_its_key_and_a_later_one_counts(tmp_path: Path) -> None:
    written(tmp_path, encoded_frame(FIRST, [b'{"n":1}']), encoded_frame(SECOND, [b'{"n":2}', b'{"n":3}']))

    frames = Frames(written(tmp_path, encoded_frame(FIRST, [b'{"n":4}'])))

    assert {FIRST, SECOND} == {*frames.keys}
    assert [b'{"n":4}'] == frames.read(FIRST, bytes)
    assert [b'{"n":2}', b'{"n":3}'] == frames.read(SECOND, bytes)


def test_a_frame_can_be_copied_as_it_stands(tmp_path: Path) -> None:
    frames = Frames(written(tmp_path, encoded_frame(FIRST, [b"1"]), encoded_frame(SECOND, [b"2"])))

    copied = Frames(written(tmp_path / "other", frames.raw(SECOND)))

    assert [b"2"] == copied.read(SECOND, bytes)


@pytest.mark.skipif(shutil.which("zstdcat") is None, reason="zstdcat is not installed")
def test_the_tools_of_others_print_the_whole_file(tmp_path: Path) -> None:
    path = written(tmp_path, encoded_frame(FIRST, [b'{"n":1}']), encoded_frame(SECOND, [b'{"n":2}']))

    told = subprocess.run(["zstdcat", path], check=True, capture_output=True).stdout

    assert [
        b'{"frame":{"role":"agent","trial":"a/none/q1/1"}}',
        b'{"n":1}',
        b'{"frame":{"role":"judge","trial":"a/none/q1/1","judge":"j","repetition":2}}',
        b'{"n":2}',
    ] == told.splitlines()


def test_a_torn_end_is_ignored_by_readers_and_cut_off_by_writers_wherever_it_was_torn(tmp_path: Path) -> None:
    first, second = encoded_frame(FIRST, [b"1"]), encoded_frame(SECOND, [b"2"])
    path = written(tmp_path, first)
    for size in [1, 11, 12, 13, *range(14, len(second) - 1, 9), len(second) - 1]:
        path.write_bytes(first + second[:size])

        torn = Frames(path)
        mended = Frames(written(tmp_path, second))

        assert ({FIRST}, len(first)) == ({*torn.keys}, torn.torn)
        assert ({FIRST, SECOND}, None) == ({*mended.keys}, mended.torn)


def test_room_that_was_never_written_is_a_torn_end(tmp_path: Path) -> None:
    first = encoded_frame(FIRST, [b"1"])
    path = written(tmp_path, first + bytes(5_000))

    torn = Frames(path).torn
    mended = written(tmp_path, b"")

    assert (len(first), first) == (torn, mended.read_bytes())


def test_each_damaged_byte_is_an_error_with_its_place(tmp_path: Path) -> None:
    first, second = encoded_frame(FIRST, [b"1"]), encoded_frame(SECOND, [b"2"])
    path = written(tmp_path, first, second)
    places = []
    for position in range(len(first)):
        for bit in (0x01, 0x80):
            damaged = bytearray(first + second)
            damaged[position] ^= bit
            path.write_bytes(damaged)

            with pytest.raises(RunError) as error:
                Frames(path).read(FIRST, bytes)

            places += [place for place in PLACES if f"{path}{place}" in str(error.value)]

    assert 2 * len(first) == len(places)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b'{"of": "model", "status": 200}\n', "is not the file of a recording; restore the file"),
        (encoded_frame(FIRST, [b"1"]) + b"more than the head of a frame", "is damaged at byte {end}: no frame begins"),
        (None, "cannot be read: No such file or directory; was the run recorded with --record?"),
    ],
)
def test_a_foreign_file_is_an_error(tmp_path: Path, content: bytes | None, problem: str) -> None:
    path = tmp_path / "traffic.jsonl.zst"
    if content is not None:
        path.write_bytes(content)

    with pytest.raises(RunError) as error:
        Frames(path)

    assert f"{path} {problem.format(end=len(encoded_frame(FIRST, [b'1'])))}" in str(error.value)


def test_a_file_of_another_format_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as newer:
        newer.setattr("keval_replay.frames.FORMAT", 2)
        path = written(tmp_path, encoded_frame(FIRST, [b"1"]))

    with pytest.raises(RunError, match="has format 2, and this version of keval reads format 1 only"):
        Frames(path)


def test_a_line_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    frames = Frames(written(tmp_path, encoded_frame(FIRST, [b"1", b"none"])))

    with pytest.raises(RunError, match="line 3 of the frame at byte 0 is damaged: ValueError"):
        frames.read(FIRST, int)
