"""Loopback and proxies: what keval and its agents say to each other on this machine goes through none."""

from __future__ import annotations

from collections.abc import MutableMapping

__all__ = ["spare_loopback_the_proxy"]

_LOOPBACK = ("127.0.0.1", "localhost")


def spare_loopback_the_proxy(environ: MutableMapping[str, str]) -> None:
    """Add loopback to the hosts that are reached without the proxy that the environment names.

    The gateway and the tap listen on loopback, and every SDK reads the proxy from the environment.
    """
    for name in ("NO_PROXY", "no_proxy"):
        hosts = [host for host in environ.get(name, "").split(",") if host]
        if "*" not in hosts:
            environ[name] = ",".join([*hosts, *(host for host in _LOOPBACK if host not in hosts)])
