"""Running an agent's program for one trial: its folder, environment, process, and what it is told."""

from keval_programs.confining import Confinement, confinement, inside, needed
from keval_programs.environments import environment, find_program, whole_path, words
from keval_programs.folder import FOLDER_PATHS, OF_PROGRAMS, FolderConventions, TrialFolder, open_folder
from keval_programs.limits import Limits
from keval_programs.placeholders import (
    PLACEHOLDERS,
    SERVERS_REFUSED,
    Placeholders,
    TextTemplate,
    check_models,
    check_placeholders,
    placeholders_in,
)
from keval_programs.process import Process, StandardError, running
from keval_programs.shielding import in_thread, to_the_end
from keval_programs.tree import GIT, Entry, LedOutError, Tree

__all__ = [
    "FOLDER_PATHS",
    "GIT",
    "OF_PROGRAMS",
    "PLACEHOLDERS",
    "SERVERS_REFUSED",
    "Confinement",
    "Entry",
    "FolderConventions",
    "LedOutError",
    "Limits",
    "Placeholders",
    "Process",
    "StandardError",
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
