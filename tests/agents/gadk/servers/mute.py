"""An MCP server for tests that never answers: `mute.py PIPE` writes its process id there and reads on."""

from __future__ import annotations

import os
import sys
from pathlib import Path

Path(sys.argv[1]).write_text(str(os.getpid()), encoding="utf-8")
sys.stdin.read()
