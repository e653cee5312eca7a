"""The model vendors' SDKs for keval's own agents and judges, over one transport, and what reads their replies.

`openai_client` and `anthropic_client` make a client. They import the vendor's SDK, which takes half a second or more;
what reads replies does not.
"""

from keval_clients.anthropic import anthropic_client as anthropic_client
from keval_clients.client import Client as Client
from keval_clients.completions import mend_calls as mend_calls, text_in as text_in
from keval_clients.http import HttpClient as HttpClient, Reply as Reply
from keval_clients.network import (
    Network as Network,
    check_headers as check_headers,
    check_key as check_key,
    check_variables as check_variables,
)
from keval_clients.openai import openai_client as openai_client
from keval_clients.replies import (
    broken_off as broken_off,
    citations as citations,
    completions_usage as completions_usage,
    messages_usage as messages_usage,
    no_reply as no_reply,
    quoted as quoted,
    read_failure as read_failure,
    read_json as read_json,
    readable as readable,
    refused as refused,
)
