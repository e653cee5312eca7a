"""The recording of a run: its traffic with models and servers, kept in the run directory and read again."""
