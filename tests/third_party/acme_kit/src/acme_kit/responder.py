"""A model that greets: it calls the first tool it is offered, and answers with what comes back."""

from keval_gateway import ChatCall, ChatReply, ChatRequest, Respond


def make(seed: int) -> Respond:
    return greet


def greet(request: ChatRequest) -> ChatReply:
    last = request.messages[-1]
    if last.role == "tool":
        return ChatReply(f"It said: {last.text}")
    if request.tools:
        return ChatReply(calls=(ChatCall(request.tools[0].name, {"name": "Ada"}),))
    return ChatReply("I have nobody to ask.")
