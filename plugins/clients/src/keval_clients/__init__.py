"""The model vendors' SDKs for keval's own agents and judges, over one transport, and what reads their replies.

`openai_client` and `anthropic_client` make a client. They import the vendor's SDK, which takes half a second or more;
what reads replies does not.
"""

from keval import lazily

__getattr__, __dir__, __all__ = lazily(
    __name__,
    {
        "keval_clients.anthropic": "anthropic_client",
        "keval_clients.client": "Client",
        "keval_clients.completions": "mend_calls text_in",
        "keval_clients.http": "HttpClient Reply",
        "keval_clients.network": "Network check_headers check_key check_variables",
        "keval_clients.openai": "openai_client",
        "keval_clients.replies": (
            "broken_off citations completions_usage messages_usage no_reply quoted read_failure read_json readable "
            "refused"
        ),
    },
)
