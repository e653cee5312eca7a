"""Faults of a model's endpoint, made on purpose: by the gateway, or by a middleware in any run.

`faults.py` is the file that lists them, `draw.py` chooses which fault hits which request, and `response.py` makes it.
"""

from keval_gateway.disturb.draw import Draw
from keval_gateway.disturb.faults import Fault, Faults, read_faults

__all__ = ["Draw", "Fault", "Faults", "read_faults"]
