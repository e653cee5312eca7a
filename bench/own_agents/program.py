"""A program that answers the question on its standard input by one request to a model."""

from __future__ import annotations

import http.client
import json
import os
import sys
from urllib.parse import urlsplit


def ask(question: str, url: str, key: str) -> str:
    """Return the model's answer, over a connection of its own."""
    model = urlsplit(url)
    connection = http.client.HTTPConnection(model.netloc)
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    request = {"model": "m", "messages": [{"role": "user", "content": question}]}
    connection.request("POST", f"{model.path}/chat/completions", json.dumps(request), headers)
    answer: str = json.load(connection.getresponse())["choices"][0]["message"]["content"]
    connection.close()
    return answer


if __name__ == "__main__":
    print(ask(sys.stdin.read(), os.environ["OPENAI_BASE_URL"], os.environ["OPENAI_API_KEY"]))
