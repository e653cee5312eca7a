"""Simulated models for keval: deterministic rules that call tools, answer in prose and judge answers.

Importing this package costs little, as naming a simulated model in a config must. The models themselves are in
`keval_simulator.model` and `keval_simulator.responders`, and the judge is in `keval_simulator.judge`.
"""

from keval_simulator.provider import SimulatedProvider

__all__ = ["SimulatedProvider"]
