"""The run on disk: what a run directory holds, and how it is read and written."""
