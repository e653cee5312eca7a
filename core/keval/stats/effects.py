"""Effects: what an arm differs by, on the same samples."""

from __future__ import annotations

from collections.abc import Mapping

from keval.stats.estimate import Estimate, estimate

__all__ = ["paired_effect"]


def paired_effect(arm: Mapping[int, float], against: Mapping[int, float]) -> Estimate:
    """Estimate the mean difference `arm - against` over the samples that both have, one value per sample each.

    Pairing takes out how hard each question is. Source: Miller, arXiv 2411.00640, section 4.2 (paired differences).
    """
    return estimate(arm[sample] - against[sample] for sample in arm if sample in against)
