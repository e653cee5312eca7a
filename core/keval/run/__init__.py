"""The flow of a run, from a plan to a summary; each command chooses its steps."""
