"""The model vendors' APIs for keval's own agents and judges: one client each, without hidden retries.

`openai_client` and `anthropic_client` make one. They import aiohttp, which takes a tenth of a second; what reads
replies does not.
"""

from keval import lazily

__getattr__, __dir__, __all__ = lazily(
    __name__,
    {
        "keval_clients.anthropic": "anthropic_client",
        "keval_clients.bounds": "origin",
        "keval_clients.client": "Client event_data",
        "keval_clients.http": "HttpClient Reply",
        "keval_clients.network": "Network check_headers check_key check_variables key_problems variable_problems",
        "keval_clients.openai": "openai_client",
        "keval_clients.replies": (
            "RefusedError broken_off completions_usage messages_usage no_reply quoted read_json responses_usage"
        ),
    },
)
