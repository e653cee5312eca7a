"""How much of the ideal wall time is kept at a model latency of 200 ms and 100 trials at once.

Each trial is one model call, and one more by a judge, over plain asyncio HTTP to a server in a process of its own.
Where the judge waits for the last trial, as a budget of tokens makes it, the ideal is `trials × 2 × 0.2 / 100` seconds.
Where it grades while other trials run, it is half of that, and 0.2 s for the last judgement.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from measure import keval, part

TRIALS, LATENCY, AT_ONCE = part(2_000), 0.2, 100

_SERVER = """
import asyncio, sys
LATENCY = float(sys.argv[1])
BODY = b'yes'
REPLY = b'HTTP/1.1 200 OK\\r\\nContent-Length: %d\\r\\n\\r\\n%s' % (len(BODY), BODY)
async def serve(reader, writer):
    try:
        while True:
            await reader.readuntil(b'\\r\\n\\r\\n')
            await reader.readexactly(2)
            await asyncio.sleep(LATENCY)
            writer.write(REPLY)
    except asyncio.IncompleteReadError:
        writer.close()
async def main():
    server = await asyncio.start_server(serve, '127.0.0.1', 0, backlog=1000)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)
asyncio.run(main())
"""


@contextmanager
def model(latency: float) -> Iterator[int]:
    """Serve a model that answers after `latency` seconds; yields its port."""
    command = [sys.executable, "-c", _SERVER, str(latency)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        yield int(server.stdout.readline())
        server.communicate()


def judged(folder: Path, port: int, trials: int, *, late: bool) -> tuple[float, float]:
    """Run that many judged trials; returns the wall time of the run and the median of its trials, in seconds."""
    config = {
        "dataset": {"path": "q.jsonl"},
        "agents": {"bench": {"type": "bench/http", "port": port}},
        "conditions": {"baseline": {}},
        "judges": {"bench": {"type": "bench/http", "port": port}},
        "rubrics": ["bench/plain"],
        "execution": {"max_concurrent": AT_ONCE},
        **({"budget": {"tokens": 10**12}} if late else {}),
    }
    wall = keval(folder, config, trials).wall
    summary = max(folder.glob("results/*/*/summary.json"), key=lambda path: path.stat().st_mtime)
    (arm,) = json.loads(summary.read_bytes())["trials"]
    return wall, arm["duration_median"]


def main() -> None:
    with model(LATENCY) as port, tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        start_up = judged(folder, port, 1, late=True)[0] - 2 * LATENCY
        after, took_after = judged(folder, port, TRIALS, late=True)
        meanwhile, took_meanwhile = judged(folder, port, TRIALS, late=False)
    for what, took, ideal in (
        ("judged after the last trial", after, TRIALS * 2 * LATENCY / AT_ONCE),
        ("judged while trials run", meanwhile, TRIALS * LATENCY / AT_ONCE + LATENCY),
    ):
        print(
            f"{TRIALS} trials at {LATENCY * 1000:.0f} ms, {AT_ONCE} at once, {what}: {took:.2f} s, ideal {ideal:.1f} s:"
        )
        print(f"  {ideal / took:.0%} of the ideal, start-up ({start_up:.2f} s) included; wanted: at least 90 %")
        print(f"  {ideal / (took - start_up):.0%} without start-up")
    print(f"judged while trials run, against after them: {meanwhile / after:.2f} times the wall time,")
    print(f"  median response time {took_meanwhile * 1000:.1f} against {took_after * 1000:.1f} ms")


if __name__ == "__main__":
    main()
