"""`keval check`: an evaluation is an instrument, and this examines it."""

from keval_instrument.findings import Defect, Examined, Figure
from keval_instrument.material import Material
from keval_instrument.written import WrittenAnswer

__all__ = ["Defect", "Examined", "Figure", "Material", "WrittenAnswer"]
