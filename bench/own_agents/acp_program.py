"""The program as an agent that speaks the Agent Client Protocol, without an SDK, so that it starts quickly."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from program import ask

_RESULTS = {"initialize": {"protocolVersion": 1}, "session/new": {"sessionId": "s"}}


def send(**message: Any) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


for line in sys.stdin:
    asked = json.loads(line)
    if asked["method"] == "session/prompt":
        question = asked["params"]["prompt"][0]["text"]
        text = ask(question, os.environ["OPENAI_BASE_URL"], os.environ["OPENAI_API_KEY"])
        update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}
        send(method="session/update", params={"sessionId": "s", "update": update})
        send(id=asked["id"], result={"stopReason": "end_turn"})
    else:
        send(id=asked["id"], result=_RESULTS[asked["method"]])
