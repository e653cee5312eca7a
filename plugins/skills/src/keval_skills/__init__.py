"""Instruction files, skills and plugins of coding agents as keval contexts.

`instructions`, `skill` and `plugin` are the context providers. `skill_folder` reads and checks what is on disk,
`changes` makes the texts that a config asks for, `placing` writes into workspaces, `text_log` finds texts in model
requests, and `server` is the MCP server of the tool `read_skill`.
"""

from keval import lazily

# Imported when first used: the server's process has no use for the contexts.
__getattr__, __dir__, __all__ = lazily(
    __name__,
    {"keval_skills.instructions": "Instructions", "keval_skills.plugin": "Plugin", "keval_skills.skill": "Skill"},
)
