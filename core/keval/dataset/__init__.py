"""Datasets: samples out of a file, with one reader a format behind the seam `keval.datasets`."""
