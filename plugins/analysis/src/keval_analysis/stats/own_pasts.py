"""What agents had of their own before they were asked: histories and facts, which arms are held to have had alike."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256

import attrs
import orjson

from keval.records.transcript import Transcript
from keval.store.serialization import to_plain


@attrs.define
class OwnPasts:
    """Digests of the histories and facts of its own that the agent of an arm had, by the number of the sample."""

    histories: dict[int, set[bytes]] = attrs.field(factory=dict)
    facts: dict[int, set[bytes]] = attrs.field(factory=dict)

    def add(self, transcript: Transcript, sample: int) -> None:
        """Note what an answer's transcript has of them."""
        for own, noted in ((transcript.history, self.histories), (transcript.facts, self.facts)):
            if own is not None:
                content = orjson.dumps(to_plain(own), option=orjson.OPT_SORT_KEYS)
                noted.setdefault(sample, set()).add(sha256(content).digest())


def unlike_pasts(arms: Iterable[OwnPasts]) -> tuple[set[int], set[int]]:
    """Return the samples for which arms had unlike histories, and those for which they had unlike facts."""
    known = [*arms]
    return _unlike([each.histories for each in known]), _unlike([each.facts for each in known])


def _unlike(noted: Sequence[Mapping[int, set[bytes]]]) -> set[int]:
    samples = set[int]().union(*noted)
    return {sample for sample in samples if any(each.get(sample) != noted[0].get(sample) for each in noted)}
