"""Instruction files, skills and plugins of coding agents as keval contexts.

`instructions`, `skill` and `plugin` are the context providers. `skill_folder` reads and checks what is on disk,
`changes` makes the texts that a config asks for, `placing` writes into workspaces, `text_log` finds texts in model
requests, and `server` is the MCP server of the tool `read_skill`.
"""

from keval_skills.instructions import Instructions as Instructions
from keval_skills.plugin import Plugin as Plugin
from keval_skills.skill import Skill as Skill
