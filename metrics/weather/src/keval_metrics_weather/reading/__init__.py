"""Reading: what a text says, as records that the metrics share.

A text is read from the outside in: `words`, `blocks` (paragraphs, bullets, rows of tables), in them `quantities`,
`conditions`, `places` and `times`, and `statements`, which put them together. `answer` keeps it all for one answer. No
metric has a regular expression of its own.
"""
