"""Reading: what a text says, as records that the metrics share.

A text is read from the outside in: `words`, `tables`, in them `temperatures`,
`conditions`, `places` and `times`, and `statements`, which put them together for one answer. No metric has a regular
expression of its own.
"""
