"""The page of a run that people share, and its fragments, which a server can give one by one.

A `Report` goes in and HTML comes out, with all text of others escaped: `page` for the whole, `FRAGMENTS` for its parts,
`answers` for one question.
"""

from keval.report.page.answers import answers, lines_of
from keval.report.page.document import FRAGMENTS, page
from keval.report.page.report import Report

__all__ = ["FRAGMENTS", "Report", "answers", "lines_of", "page"]
