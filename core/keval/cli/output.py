"""Standard output and standard error that may go away: a reader that closes the pipe, a full disk."""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from keval.errors import KevalError

READER_GONE = 141
"""The exit code after the reader of standard output closed the pipe; a shell tells it of SIGPIPE."""


class OutputError(KevalError):
    """Standard output cannot be written."""


class _Guarded(io.RawIOBase):
    """A descriptor for writing. After the first failure nothing more is written to it."""

    def __init__(self, descriptor: int, *, needed: bool) -> None:
        self._descriptor = descriptor
        self._needed = needed
        self._gone = False

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._descriptor

    def isatty(self) -> bool:
        return os.isatty(self._descriptor)

    def write(self, data: object) -> int:
        view = memoryview(data)  # type: ignore[arg-type]
        if self._gone:
            return view.nbytes
        try:
            return os.write(self._descriptor, view)
        except BlockingIOError:
            # Somebody who shares the terminal made it non-blocking. After 0 `BufferedWriter` tries again at once; after
            # `None`, which the protocol has for this, it would raise and lose what is left.
            import select  # few commands need it

            select.select((), (self._descriptor,), ())
            return 0
        except OSError as error:
            self._gone = True
            if not self._needed:
                return view.nbytes  # a run goes on when its messages are lost
            if error.errno == errno.EPIPE:
                raise SystemExit(READER_GONE) from None
            told = f"cannot write to standard output: {error.strerror}; finished trials and scores are saved"
            raise OutputError(told) from error


@contextmanager
def guarded_output() -> Iterator[None]:
    """Guard the process's own standard streams, and write out what is buffered at the end.

    Raises:
        SystemExit: the reader of standard output is gone, so nobody wants the rest.
        OutputError: standard output cannot be written.
    """
    kept = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = _guard(sys.stdout, needed=True), _guard(sys.stderr, needed=False)
    try:
        yield
    finally:
        try:
            for stream in (sys.stdout, sys.stderr):
                if stream is not None:
                    stream.flush()
        finally:
            sys.stdout, sys.stderr = kept


def _guard(stream: object, *, needed: bool) -> io.TextIOWrapper:
    """Return a stream over the same descriptor; one that a test or a host has put there stays."""
    # Without buffering (PYTHONUNBUFFERED), the file itself stands in place of the buffer.
    if not (
        isinstance(stream, io.TextIOWrapper) and isinstance(getattr(stream.buffer, "raw", stream.buffer), io.FileIO)
    ):
        return stream  # type: ignore[return-value]
    stream.flush()
    # A terminal that cannot show Δ shows ?, and the report goes on.
    return io.TextIOWrapper(
        io.BufferedWriter(_Guarded(stream.fileno(), needed=needed)),
        stream.encoding,
        "replace",
        line_buffering=stream.line_buffering or not needed,
        write_through=stream.write_through,
    )
