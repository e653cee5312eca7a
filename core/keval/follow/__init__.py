"""Following a run as it grows: new trials and scores are read as they come, and only counts and sums are kept."""

from __future__ import annotations

from keval.follow.follower import Follower
from keval.follow.progress import ArmProgress, RunProgress

__all__ = ["ArmProgress", "Follower", "RunProgress"]
