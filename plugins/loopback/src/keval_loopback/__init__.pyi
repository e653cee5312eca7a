"""Serving on loopback: a port, a server that ends with its context, and which requests it must refuse."""

from keval_loopback.child import serving_until_ended as serving_until_ended
from keval_loopback.loopback import inherited as inherited, listen as listen, refusal as refusal
from keval_loopback.process import ServerProgram as ServerProgram, run_server as run_server
from keval_loopback.serving import CLOSE as CLOSE, disconnected as disconnected, serve as serve
