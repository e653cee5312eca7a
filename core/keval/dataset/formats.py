"""The dataset formats that ship with keval: JSON lines and YAML."""

from __future__ import annotations

from array import array
from codecs import BOM_UTF8
from collections.abc import Iterator
from typing import Any
from zlib import crc32

import attrs
import orjson

from keval.config.source import Source
from keval.errors import ConfigError, Problem
from keval.files import LineFile
from keval.seams.infrastructure import DatasetRequest, RawRecord


@attrs.define
class JsonLines:
    """One JSON object per line. A line is read again when its sample is needed."""

    _lines: LineFile | None = attrs.field(default=None, init=False, repr=False, eq=False)

    def read(self, request: DatasetRequest) -> Iterator[RawRecord | Problem]:
        """Yield the record of each line that is not blank."""
        starts, checks = array("Q"), array("L")
        self._lines = LineFile(request.path, starts, checks)
        end = 0
        with request.path.open("rb") as content:
            for number, line in enumerate(content, start=1):
                start, end = end, end + len(line)
                text = line.rstrip(b"\r\n").removeprefix(BOM_UTF8)
                if not text.strip():
                    continue
                try:
                    data = orjson.loads(text)
                except orjson.JSONDecodeError as error:
                    text.decode()  # bytes that are not UTF-8 are an error of the whole file
                    place = f"{request.path}:{number}:{error.colno}"
                    told = "one object a line, with no comma after it; of an array, name the file .json"
                    yield Problem(place, f"not valid JSON: {error.msg}; {told}")
                    continue
                starts.append(start)
                # The file may be edited before the line is read again for its sample.
                checks.append(crc32(line))
                yield RawRecord(data, number, len(starts) - 1)

    def read_again(self, request: DatasetRequest, position: int) -> Any:
        """Return the record of a line. Raises ConfigError when the line has changed."""
        if self._lines is None:
            raise RuntimeError("the dataset was not read before")
        return orjson.loads(self._lines[position].removeprefix(BOM_UTF8))


class Yaml:
    """A list of records."""

    def read(self, request: DatasetRequest) -> Iterator[RawRecord | Problem]:
        """Yield the items of the list."""
        text = request.path.read_text(encoding="utf-8-sig")
        if not text.strip():
            return
        source = Source.parse(text, str(request.path), request.path.parent)
        if not isinstance(source.data, list):
            raise ConfigError([Problem(source.place(()), "expected a list of records: `- question: …`")])
        for index, item in enumerate(source.data):
            data = item
            if isinstance(item, dict):
                # Texts stay as written: `yes` is an answer and not True, and 012 an id and not 10.
                written = {key: source.written((index, key)) for key in request.text_keys}
                data = {**item, **{key: text for key, text in written.items() if text}}
            yield RawRecord(data, source.line((index,)))
