"""Asks an installed `keval view` for its pages, as a browser would; arguments: the command, and the results folder."""

from __future__ import annotations

import re
import shlex
import signal
import subprocess
import sys
import urllib.request
from http.cookiejar import CookieJar

_URL = re.compile(r"(http://[^/]+)/\?token=\S+")

typed, results = sys.argv[1:]
arguments = [*shlex.split(typed), "view", results, "--no-browser", "--port", "0"]
viewer = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPCookieProcessor(CookieJar()))


def page(url: str) -> str:
    """What the viewer answers."""
    with opener.open(url) as response:
        return str(response.read().decode())


try:
    assert viewer.stdout is not None
    told = next(found for line in viewer.stdout if (found := _URL.search(line)))
    runs = re.findall(r'href="(/runs/[^"?]+)"', page(told[0]))
    pages = [page(told[1] + path) for path in (runs[0], f"{runs[0]}/trials", f"{runs[0]}/compare")]
    assert "Effects" in pages[0]
    assert ":root" in page(f"{told[1]}/static/page.css")
    assert "EventSource" in page(f"{told[1]}/static/viewer/stream.js")
finally:
    viewer.send_signal(signal.SIGINT)
    assert viewer.wait(30) == 0
