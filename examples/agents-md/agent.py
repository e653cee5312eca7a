"""A small coding agent: reads AGENTS.md, offers the skills in .agents/skills, and has a shell as its only tool.

`python agent.py` answers the question on standard input. It stands for a coding agent where none is installed.
"""

import json
import os
import re
import subprocess
import sys
import urllib.request
from pathlib import Path

PARAMETERS = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
SHELL = {"name": "bash", "description": "Run a command in the working folder.", "parameters": PARAMETERS}
MOST_CALLS = 30


def instructions() -> str:
    """Return the system prompt: that of the condition, AGENTS.md, and the skills by name, description and path."""
    file = Path("AGENTS.md")
    parts = [sys.argv[1], file.read_text(encoding="utf-8") if file.exists() else ""]
    skills = []
    for path in sorted(Path(".agents/skills").glob("*/SKILL.md")):
        front = path.read_text(encoding="utf-8").split("---")[1]
        told = {key: re.search(rf"^{key}: *(.+)$", front, re.MULTILINE)[1] for key in ("name", "description")}
        skills.append(f"- {told['name']}: {told['description']} (file: {path})")
    if skills:
        parts.append("\n".join(["Read the file of a skill before you do what it is for. Available skills:", *skills]))
    return "\n\n".join(filter(None, parts)) or "You work on the files in your folder."


def reply(messages: list) -> dict:
    """Ask the model for its next message."""
    asked = {"model": os.environ["MODEL"], "messages": messages, "tools": [{"type": "function", "function": SHELL}]}
    request = urllib.request.Request(
        os.environ["OPENAI_BASE_URL"] + "/chat/completions",
        json.dumps(asked).encode(),
        {"content-type": "application/json", "authorization": "Bearer " + os.environ["OPENAI_API_KEY"]},
    )
    with urllib.request.urlopen(request) as response:
        return json.load(response)["choices"][0]["message"]


def run(command: str) -> str:
    """Return what a command writes."""
    done = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=60, check=False)
    return f"{done.stdout}{done.stderr}(exit code {done.returncode})"


messages = [{"role": "system", "content": instructions()}, {"role": "user", "content": sys.stdin.read()}]
for _ in range(MOST_CALLS):
    message = reply(messages)
    messages.append(message)
    if not message.get("tool_calls"):
        print(message["content"])
        break
    for call in message["tool_calls"]:
        result = run(json.loads(call["function"]["arguments"])["command"])
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
