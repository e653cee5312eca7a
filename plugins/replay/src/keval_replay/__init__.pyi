"""The recording of a run: its traffic with models and servers, kept in the run directory and read again."""

from keval_replay.frames import FrameKey as FrameKey, Frames as Frames, traffic_file as traffic_file
from keval_replay.played_gate import PlayedGate as PlayedGate
from keval_replay.recording import Recording as Recording, traffic_of as traffic_of
from keval_replay.replay import replay_run as replay_run
from keval_replay.replay_plan import planned_replay as planned_replay
from keval_replay.request_comparison import (
    ComparableRequest as ComparableRequest,
    first_difference as first_difference,
    without_volatile as without_volatile,
)
from keval_replay.run_diff import (
    Change as Change,
    DifferentItem as DifferentItem,
    RunDiff as RunDiff,
    Tally as Tally,
    diff_runs as diff_runs,
)
from keval_replay.traffic_lines import read_traffic as read_traffic
