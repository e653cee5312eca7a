"""How short an answer is: a whole third-party plugin."""

import attrs

from keval import Score, Trial

__all__ = ["Brevity"]


@attrs.frozen
class Brevity:
    """Scores 1 for an answer within `limit` words, less the longer it is."""

    limit: int = 40

    def score(self, trial: Trial) -> Score:
        """Return `limit / words`, at most 1."""
        words = len(trial.output.split())
        return Score(min(1.0, self.limit / max(words, 1)), f"{words} words", details={"words": words})
