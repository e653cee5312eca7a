"""The commands that show runs, a module each."""
