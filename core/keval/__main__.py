"""`python -m keval` is the keval command."""

from keval.cli import main

main(prog_name="keval")
