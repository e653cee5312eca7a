"""Runs in the browser: a server on loopback whose pages are made from the fragments of the HTML report.

How a page is added is in the package's README.
"""

from keval_viewer.interactive.interactive_run import InteractiveRun as InteractiveRun
