"""The environment of Claude Code's process: hundreds of variables steer it, and a trial sets its own."""

from __future__ import annotations

import math
from collections.abc import Mapping

from keval_claude_code.home import Home

__all__ = ["build_environment"]

_PASSED_ON = ("PATH", "LANG", "LC_ALL", "TZ", "SYSTEMROOT", "COMSPEC", "PATHEXT")
"""What any program may need of the user's environment. Everything else stays outside, above all what would send the
model requests elsewhere, such as CLAUDE_CODE_USE_VERTEX."""

_NETWORK = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS")

_LOOPBACK = "127.0.0.1,localhost"


def build_environment(
    user: Mapping[str, str], home: Home, *, url: str, key: str, headers: Mapping[str, str], patience: float
) -> dict[str, str]:
    """Return the whole environment of a trial's process.

    `user` is the user's own; `url`, `key` and `headers` are for the model's endpoint; `patience` is how many seconds a
    server may take to come up.
    """
    network = (*_NETWORK, *map(str.lower, _NETWORK))
    passed = {name: user[name] for name in (*_PASSED_ON, *network) if name in user}
    for name in ("NO_PROXY", "no_proxy"):
        # keval's gateway and tap are on loopback, which a proxy elsewhere cannot reach.
        passed[name] = ",".join(filter(None, (passed.get(name), _LOOPBACK)))
    return {
        **passed,
        "HOME": str(home.root),
        "TMPDIR": str(home.root),
        "CLAUDE_CODE_TMPDIR": str(home.root),
        "CLAUDE_CONFIG_DIR": str(home.config),
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": key,
        "ANTHROPIC_CUSTOM_HEADERS": "\n".join(f"{name}: {value}" for name, value in headers.items()),
        # keval retries in one place.
        "CLAUDE_CODE_MAX_RETRIES": "0",
        "CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK": "1",
        "MCP_TIMEOUT": str(math.ceil(1000 * patience)),
        # Every tool is offered as it is, and called before the answer: no search for tools, no work left behind it.
        "ENABLE_TOOL_SEARCH": "false",
        "CLAUDE_CODE_MAX_MCP_DESCRIPTION_LENGTH": "1000000",
        "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",
        # The system prompt begins without a line about the program's version.
        "CLAUDE_CODE_ATTRIBUTION_HEADER": "0",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_ERROR_REPORTING": "1",
        "DISABLE_TELEMETRY": "1",
    }
