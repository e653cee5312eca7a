"""Becomes a program in a sandbox of bubblewrap, after it has handed keval the ways out of it.

`inside.py DOOR ADDRESSES COMMAND...` is run as a script in the sandbox's own network, where nothing else is. It listens
on each address, gives the listening sockets to keval over the Unix socket DOOR, and becomes COMMAND. keval outside
accepts what connects to them, so the program reaches these addresses and no others, and no process stands between.
"""

from __future__ import annotations

import os
import sys

# The public modules `socket` and `signal` take ten milliseconds to import, in every trial.
from _signal import SIG_DFL, SIGPIPE, signal  # type: ignore[import-not-found]
from _socket import AF_INET, AF_INET6, AF_UNIX, SCM_RIGHTS, SOCK_DGRAM, SOCK_STREAM, SOL_SOCKET, socket
from array import array


def main(door: str, addresses: str, command: list[str]) -> None:
    """Hand the sockets over, and become the command."""
    with open("/proc/self/environ", "rb") as file:  # Python may have added to `os.environ`
        environ = dict(entry.split(b"=", 1) for entry in file.read().split(b"\0") if b"=" in entry)
    listeners = [_listen(address) for address in addresses.split(",")]
    way = socket(AF_UNIX, SOCK_DGRAM)
    way.connect(door)
    way.sendmsg([b"."], [(SOL_SOCKET, SCM_RIGHTS, array("i", [each.fileno() for each in listeners]))])
    signal(SIGPIPE, SIG_DFL)  # which Python ignores
    try:
        os.execvpe(command[0], command, environ)  # noqa: S606 - no shell is wanted
    except OSError as error:
        sys.stderr.write(f"{command[0]} cannot be started in the sandbox: {error.strerror}\n")
        sys.exit(127)


def _listen(address: str) -> socket:
    host, _, port = address.rpartition(":")
    listener = socket(AF_INET6 if ":" in host else AF_INET, SOCK_STREAM)
    listener.bind((host, int(port)))
    listener.listen(128)
    return listener


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
