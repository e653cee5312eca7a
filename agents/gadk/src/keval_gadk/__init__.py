"""The keval agent `gadk`: Google's Agent Development Kit, driven as its own documentation tells a developer to.

Importing this package imports no SDK; a trial does.
"""

from keval_gadk.agent import Api, Gadk

__all__ = ["Api", "Gadk"]
