"""Metrics that score, fail, leave their scale, are neutral and read facts."""

import attrs

from keval import Score, Trial


@attrs.frozen
class Length:
    """The answer's share of `limit` characters."""

    limit: int = attrs.field(default=100, validator=attrs.validators.ge(1))

    def score(self, trial: Trial) -> Score:
        length = len(trial.output)
        return Score(min(1.0, length / self.limit), f"{length} characters", details={"length": length})


class Broken:
    def score(self, trial: Trial) -> Score:
        raise RuntimeError("the metric is broken")


class Beyond:
    def score(self, trial: Trial) -> Score:
        return Score(7.0, "beyond the scale")


class Neutral:
    async def score(self, trial: Trial) -> Score:
        return Score(0.5, "nothing to judge", neutral=True)


class UsesFact:
    def score(self, trial: Trial) -> Score:
        return Score(float(trial.sample.facts["truth"] in trial.output), "looked for the fact")
