"""The recording of a run: its traffic with models and servers, kept in the run directory and read again."""

from keval import lazily

__getattr__, __dir__, __all__ = lazily(
    __name__,
    {
        "keval_replay.frames": "FrameKey Frames traffic_file",
        "keval_replay.played_gate": "PlayedGate",
        "keval_replay.recording": "Recording traffic_of",
        "keval_replay.replay": "replay_run",
        "keval_replay.replay_plan": "planned_replay",
        "keval_replay.request_comparison": "ComparableRequest first_difference without_volatile",
        "keval_replay.run_diff": "Change DifferentItem RunDiff Tally diff_runs",
        "keval_replay.traffic_lines": "read_traffic",
    },
)
