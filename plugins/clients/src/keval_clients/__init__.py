"""The model vendors' APIs for keval's own agents and judges: one client each, without hidden retries.

`keval_clients.openai.build` and `keval_clients.anthropic.build` make one. Those modules import aiohttp, which
takes a tenth of a second; what is here does not.
"""

from keval_clients.replies import (
    RefusedError,
    broken_off,
    completions_usage,
    messages_usage,
    no_reply,
    quoted,
    read_json,
    responses_usage,
)

__all__ = [
    "RefusedError",
    "broken_off",
    "completions_usage",
    "messages_usage",
    "no_reply",
    "quoted",
    "read_json",
    "responses_usage",
]
