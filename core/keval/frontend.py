"""What another front end than the command line needs: runs, and the parts of pages that show them.

The names of `keval` and `keval.plugin` are public; these may change in any version, as the layout of pages may.
"""

from keval import names_of

__getattr__, __dir__, __all__ = names_of(__name__, __file__)
