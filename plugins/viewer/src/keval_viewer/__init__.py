"""Runs in the browser: a server on loopback whose pages are made from the fragments of the HTML report.

A page is a module of `keval_viewer.pages`.
"""

from keval import lazily

__getattr__, __dir__, __all__ = lazily(__name__, {"keval_viewer.interactive.interactive_run": "InteractiveRun"})
