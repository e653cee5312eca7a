"""A dataset format: a question and its answer, parted by a separator, a line."""

from collections.abc import Iterator

import attrs

from keval.plugin import DatasetRequest, Problem, RawRecord


@attrs.frozen
class Pairs:
    """Reads `question <separator> answer` lines."""

    separator: str = "=>"

    def read(self, request: DatasetRequest) -> Iterator[RawRecord | Problem]:
        lines = request.path.read_text(encoding="utf-8").splitlines()
        for number, line in enumerate(lines, start=1):
            question, found, answer = (part.strip() for part in line.partition(self.separator))
            if not found:
                yield Problem(f"{request.path}:{number}", f"expected a question, {self.separator} and an answer")
            else:
                yield RawRecord({"id": f"line-{number}", "question": question, "answer": answer}, number)
