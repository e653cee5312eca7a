"""Runs in the browser: a server on loopback whose pages are made from the fragments of the HTML report.

How a page is added is in the package's README.
"""

from keval import lazily

__getattr__, __dir__, __all__ = lazily(__name__, {"keval_viewer.interactive.interactive_run": "InteractiveRun"})
