"""What plugins import, besides the records in `keval`: the seams, and what passes through them."""

from keval import names_of

__getattr__, __dir__, __all__ = names_of(__name__, __file__)
