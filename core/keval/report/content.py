"""What the report says of content in tools' results that did not reach a model."""

from __future__ import annotations

from collections import Counter, defaultdict

from keval.report.figures import counted
from keval.report.lines import joined
from keval.summary import Summary
from keval.traffic import ContentKind

__all__ = ["dropped_sentences"]

_NOUNS: dict[ContentKind, str] = {
    "image": "image",
    "audio": "sound",
    "resource_link": "link",
    "resource": "resource",
    "structured": "structured result",
}


def dropped_sentences(summary: Summary) -> list[str]:
    """Return a sentence for each agent that could not pass something that tools returned to its model."""
    dropped: dict[str, Counter[ContentKind]] = defaultdict(Counter)
    for arm in summary.trials:
        dropped[arm.agent].update(arm.dropped)
    return [
        f"{joined([counted(count, _NOUNS[kind]) for kind, count in kinds.items()])} that tools returned did not reach"
        f" the model ({agent})."
        for agent, kinds in dropped.items()
        if kinds
    ]
