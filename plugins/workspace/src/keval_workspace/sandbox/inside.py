"""Becomes a program in a sandbox of bubblewrap, after it has handed keval the ways out of it.

`inside.py DOOR ADDRESSES COMMAND...` is run as a script in the sandbox's own network, where nothing else is. It listens
on each address, gives the listening sockets to keval over the Unix socket DOOR, and becomes COMMAND. keval outside
accepts what connects to them, so the program reaches these addresses and no others, and no process stands between.
"""

from __future__ import annotations

import os
import socket
import sys
from signal import SIG_DFL, SIGPIPE, signal


def main(door: str, addresses: str, command: list[str]) -> None:
    """Hand the sockets over, and become the command."""
    with open("/proc/self/environ", "rb") as file:  # Python may have added to `os.environ`
        environ = dict(entry.split(b"=", 1) for entry in file.read().split(b"\0") if b"=" in entry)
    listeners = [_listen(address) for address in addresses.split(",")]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as way:
        way.connect(door)
        socket.send_fds(way, [b"."], [listener.fileno() for listener in listeners])
    signal(SIGPIPE, SIG_DFL)  # which Python ignores
    try:
        os.execvpe(command[0], command, environ)  # noqa: S606 - no shell is wanted
    except OSError as error:
        sys.stderr.write(f"{command[0]} cannot be started in the sandbox: {error.strerror}\n")
        sys.exit(127)


def _listen(address: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    listener.bind((host, int(port)))
    listener.listen(128)
    return listener


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
