"""The scores of a run, trial by trial: the index of their file says where those of each trial are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from keval.files import DAMAGE, LineFile, open_kept
from keval.records.scores import ScoreLine
from keval.store.finished import Ranking
from keval.store.index import Index
from keval.store.scores import ScoresFile, trial_of
from keval.store.serialization import read_score


@attrs.frozen(eq=False)
class ScoresByTrial:
    """Reads the scores of trials. Where they are is known by the index of each file."""

    _ranking: Ranking
    _files: Sequence[tuple[LineFile, Index]]

    @classmethod
    def of_file(cls, scores: ScoresFile, ranking: Ranking) -> ScoresByTrial:
        """Return what reads the scores of a run whose trials have this order. Raises RunError."""
        return cls(ranking, [(LineFile(index.of, opened=open_kept), index.read()) for index in scores.indexes(ranking)])

    def read(self) -> Iterator[ScoreLine]:
        """Read all scores, in the order of trials. Raises RunError."""
        for lines, index in self._files:
            for start in index.starts:
                yield from _block(lines, start >> 1)

    def of(self, trial: str) -> Iterator[ScoreLine]:
        """Read the scores of a trial. Raises RunError."""
        if (rank := self._ranking.named(trial)) is not None:
            for lines, index in self._files:
                # The scores of a trial that is scored in two steps, as with a late judge, lie in several blocks.
                for place in index.between(rank, rank + 1):
                    yield from _block(lines, index.starts[place] >> 1)


def _block(lines: LineFile, start: int) -> Iterator[ScoreLine]:
    """Read the scores of one trial that follow each other, the first of which begins at a byte. Raises RunError."""
    trial = ""
    # A line without its end is being written, or was torn by a power cut.
    while (line := lines.at(start)).endswith(b"\n"):
        try:
            if trial and trial != trial_of(line):
                return
            found = read_score(line)
        except DAMAGE as error:
            raise lines.damaged(start, error) from error
        yield found
        trial, start = found.trial, start + len(line)
