"""What the plugins of keval must pass, for anyone's plugins: a check for each seam, and what tests need besides."""

from keval import names_of

__getattr__, __dir__, __all__ = names_of(__name__, __file__)
