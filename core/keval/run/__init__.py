"""The run in progress, and its steps, from which running, resuming, scoring again, replaying and play choose."""
