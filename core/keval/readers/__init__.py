"""The readers of dataset formats that ship with the core; a run loads the one that it names."""
