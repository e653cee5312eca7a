"""A person with a browser: opens the page whose URL is the last argument, and fills in and sends every form."""

from __future__ import annotations

import re
import sys
from urllib.parse import urljoin

import httpx2


def visit(url: str, refuses: bool) -> None:
    with httpx2.Client(trust_env=False, follow_redirects=True) as browser:
        page = browser.get(url)
        while form := re.search(r'<form[^>]* action="([^"]+)" method="post">(.*?)</form>', page.text, re.DOTALL):
            hidden = dict(re.findall(r'name="(\w+)" value="(\w*)"', form[2]))
            if refuses and hidden["prompt"] == "consent":
                page = browser.get(urljoin(str(page.url), re.findall(r'href="([^"]+/abort)"', page.text)[0]))
            else:
                page = browser.post(
                    urljoin(str(page.url), form[1]), data={**hidden, "login": "ada", "password": "lovelace"}
                )


visit(sys.argv[-1], "refuse" in sys.argv)
