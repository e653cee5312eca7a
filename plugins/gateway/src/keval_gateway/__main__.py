"""`python -m keval_gateway` is `keval gateway`."""

from keval_gateway.command import gateway

gateway(prog_name="keval gateway")
