"""The simulated coding model, which reads and edits files by an agent's own tools, as a script says."""

from keval_simulator.coder.middleware import CoderScript
from keval_simulator.coder.model import coder

__all__ = ["CoderScript", "coder"]
