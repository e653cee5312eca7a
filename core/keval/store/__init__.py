"""The run on disk: reading and writing the run directory."""
