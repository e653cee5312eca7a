"""A server whose tool `dig` is called as a task, without the SDK: in 2025-11-25, or by the extension of 2026-07-28.

A task needs two looks (`tasks/get`), or in 2025-11-25 a wait (`tasks/result`), until it is over. `how` it ends: with a
result, an `error` of the tool, a refusal (`refused`), or after a `form`; a task that is `lost` is not known any more.
"""

from __future__ import annotations

import json
import sys

TYPE_CHECKING = False  # see tests.stdio_server
if TYPE_CHECKING:
    from typing import Any

PREFIX = "io.modelcontextprotocol/"
RELATED, EXTENSION, MODERN = f"{PREFIX}related-task", f"{PREFIX}tasks", "2026-07-28"
modern = sys.argv[1] == MODERN
FORM = {"type": "object", "properties": {"depth": {"type": "string", "default": "deep"}}, "required": ["depth"]}
NEEDED: dict[str, Any] = {"method": "elicitation/create", "params": {"message": "How deep?", "requestedSchema": FORM}}
REFUSED = {"code": -32050, "message": "the ground is holy"}
tasks: dict[str, dict[str, Any]] = {}
waiting: dict[str, Any] = {}  # the request for the result of a task that needs something, by task


def say(**message: Any) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def state(task: dict[str, Any]) -> dict[str, Any]:
    known = {"taskId": task["id"], "status": task["status"], "createdAt": "2026-01-01T00:00:00Z"}
    unit = "Ms" if modern else ""
    said = {"lastUpdatedAt": f"2026-01-01T00:00:0{task['looks']}Z", f"ttl{unit}": None, f"pollInterval{unit}": 1}
    return {**known, **said, "statusMessage": f"looked {task['looks']} times"}


def create(params: dict[str, Any], able: bool) -> dict[str, Any]:
    given = params.get("arguments") or {}
    if not able:
        return {"content": [{"type": "text", "text": "dug at once"}]}
    task = {"id": f"t{len(tasks) + 1}", "status": "working", "looks": 0, **given}
    task["token"] = (params.get("_meta") or {}).get("progressToken")
    tasks[task["id"]] = task
    return {"resultType": "task", **state(task)} if modern else {"task": state(task)}


def result_of(task: dict[str, Any]) -> dict[str, Any]:
    if task.get("how") == "error":
        return {"content": [{"type": "text", "text": f"nothing at {task['where']}"}], "isError": True}
    found = {"found": f"golden ring near {task['where']}", "depth": task.get("depth", "flat")}
    return {"content": [{"type": "text", "text": json.dumps(found)}], "structuredContent": found}


def end(task: dict[str, Any]) -> None:
    fails = task.get("how") == "refused" or (task.get("how") == "error" and not modern)
    task["status"] = "failed" if fails else "completed"
    if not modern:
        say(method="notifications/tasks/status", params=state(task))


def work(task: dict[str, Any]) -> None:
    task["looks"] += 1
    if task["token"] is not None:
        say(method="notifications/progress", params={"progressToken": task["token"], "progress": task["looks"]})


def look(task: dict[str, Any]) -> dict[str, Any]:
    """Return a task as `tasks/get` does."""
    if task["status"] == "working":
        work(task)
        needs = task.get("how") == "form" and "depth" not in task
        if needs:
            task["status"] = "input_required"
        elif task["looks"] >= 2 and task.get("how") != "never":
            end(task)
    seen = state(task)
    if modern and task["status"] == "completed":
        return {**seen, "result": result_of(task)}
    if modern and task["status"] == "failed":
        return {**seen, "error": REFUSED}
    return {**seen, "inputRequests": {"form": NEEDED}} if modern and task["status"] == "input_required" else seen


def fetch(number: Any, task: dict[str, Any]) -> None:
    """Answer `tasks/result`."""
    if task.get("how") == "form" and "depth" not in task:
        waiting[task["id"]] = number
        say(id=task["id"], **NEEDED | {"params": {**NEEDED["params"], "_meta": {RELATED: {"taskId": task["id"]}}}})
        return
    if task.get("how") == "never" and task["status"] == "working":
        return
    if task["status"] == "working":
        work(task)
        end(task)
    if task["status"] == "cancelled":
        say(id=number, error={"code": -32602, "message": "it has no result"})
    elif task.get("how") == "refused":
        say(id=number, error=REFUSED)
    else:
        say(id=number, result={**result_of(task), "_meta": {RELATED: {"taskId": task["id"]}}})


def answer(number: Any, method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    task = tasks.get(params.get("taskId", ""))
    able = EXTENSION in (((params.get("_meta") or {}).get(f"{PREFIX}clientCapabilities") or {}).get("extensions") or {})
    match method:
        case "initialize" if not modern:
            tasked: dict[str, Any] = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
            can: dict[str, Any] = {"tools": {}, "tasks": tasked}
            return {"protocolVersion": "2025-11-25", "capabilities": can, "serverInfo": {"name": "dig", "version": "1"}}
        case "server/discover" if modern:
            return {"supportedVersions": [MODERN], "capabilities": {"tools": {}, "extensions": {EXTENSION: {}}}}
        case "tools/list":
            properties = {name: {"type": "string"} for name in ("where", "how")}
            tool = {"name": "dig", "description": "Dig there.", "execution": {"taskSupport": "optional"}}
            return {"tools": [{**tool, "inputSchema": {"type": "object", "properties": properties}}]}
        case "tools/call":
            return create(params, able if modern else "task" in params)
        case "tasks/list" if not modern:
            return {"tasks": [state(each) for each in tasks.values()]}
        case "tasks/get" if task is not None and task.get("how") != "lost":
            return look(task)
        case "tasks/result" if task is not None and not modern and task.get("how") != "lost":
            fetch(number, task)
            return None
        case "tasks/update" if task is not None and modern:
            task.update(params["inputResponses"]["form"]["content"], status="working")
            return {}
        case "tasks/cancel" if task is not None:
            task["status"] = "cancelled"
            return {} if modern else state(task)
    code = -32602 if method.startswith("tasks/") else -32601
    say(id=number, error={"code": code, "message": "the task has expired" if code == -32602 else "no such method"})
    return None


for line in sys.stdin:
    message = json.loads(line)
    params, number = message.get("params") or {}, message.get("id")
    if "method" not in message:  # what a task needed
        given = (message.get("result") or {}).get("content") or {"depth": "unknown"}
        tasks[number].update(given)
        fetch(waiting.pop(number), tasks[number])
    elif number is not None:
        result = answer(number, message["method"], params)
        if result is not None:
            say(id=number, result={"resultType": "complete", **result} if modern else result)
