"""The simulated models: deterministic, rule-based, honest about being neither large nor a language model."""

from keval_gateway.simulate.model import SimulatedModel
from keval_gateway.simulate.models import SimulatedModels
from keval_gateway.simulate.weather import Flaws

__all__ = ["Flaws", "SimulatedModel", "SimulatedModels"]
