"""Datasets: reading samples from a file, by a reader for each format (`keval.datasets`)."""
