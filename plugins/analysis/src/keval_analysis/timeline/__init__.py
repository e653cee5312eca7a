"""Timelines: what happened in a trial, step by step, on one axis of time.

`timelines` makes them from a trial alone. What its records do not tell stays unknown; the traffic of a recording tells
more.
"""

from keval_analysis.timeline.timelines import Lane, LaneKind, Step, StepKind, Timeline, timelines

__all__ = ["Lane", "LaneKind", "Step", "StepKind", "Timeline", "timelines"]
