"""Running an agent's program for one trial: its folder, environment, process, and what it is told."""

from keval_programs.confinement import Confinement, confinement, inside, needed
from keval_programs.environment import environment, find_program, whole_path, words
from keval_programs.folder import FolderConventions, TrialFolder, open_folder
from keval_programs.placeholders import (
    PLACEHOLDERS,
    Placeholders,
    TextTemplate,
    check_models,
    check_placeholders,
    placeholders_in,
)
from keval_programs.process import Process, running
from keval_programs.shielding import in_thread, to_the_end
from keval_programs.tree import LedOutError, Tree

__all__ = [
    "PLACEHOLDERS",
    "Confinement",
    "FolderConventions",
    "LedOutError",
    "Placeholders",
    "Process",
    "TextTemplate",
    "Tree",
    "TrialFolder",
    "check_models",
    "check_placeholders",
    "confinement",
    "environment",
    "find_program",
    "in_thread",
    "inside",
    "needed",
    "open_folder",
    "placeholders_in",
    "running",
    "to_the_end",
    "whole_path",
    "words",
]
