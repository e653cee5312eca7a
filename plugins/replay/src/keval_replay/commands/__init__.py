"""The commands on recordings, a module each."""
