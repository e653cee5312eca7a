"""Reaching loopback, where the gateway and the tap listen, although the environment names a proxy."""

from __future__ import annotations

from collections.abc import MutableMapping

_LOOPBACK = ("127.0.0.1", "localhost")


def reach_loopback(environ: MutableMapping[str, str]) -> None:
    """Add loopback to the hosts that are reached without the environment's proxy, which every SDK reads."""
    for name in ("NO_PROXY", "no_proxy"):
        hosts = [host for host in environ.get(name, "").split(",") if host]
        if "*" not in hosts:
            environ[name] = ",".join([*hosts, *(host for host in _LOOPBACK if host not in hosts)])
