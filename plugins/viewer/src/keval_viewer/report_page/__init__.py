"""The page of a run that people share, and its fragments, which a server can give one by one.

A `keval_report.report.Report` goes in and HTML comes out, with all text of others escaped: `page` for the whole,
`FRAGMENTS` for its parts, `names_of` for those that are not empty, `answers` for one question. `Html` is the exporter
that writes the page.
"""

from keval_viewer.report_page.document import FRAGMENTS, Html, names_of, page
from keval_viewer.report_page.questions import answers

__all__ = ["FRAGMENTS", "Html", "answers", "names_of", "page"]
