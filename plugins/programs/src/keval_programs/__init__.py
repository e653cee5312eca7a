"""Running an agent's program for one trial: its folder, environment, process, and what it is told."""

from keval import lazily

__getattr__, __dir__, __all__ = lazily(
    __name__,
    {
        "keval_programs.confining": "Confinement confinement inside needed",
        "keval_programs.environments": "environment find_program whole_path words",
        "keval_programs.folder": "FOLDER_PATHS OF_PROGRAMS FolderConventions TrialFolder open_folder",
        "keval_programs.placeholders": (
            "PLACEHOLDERS SERVERS_REFUSED Placeholders TextTemplate check_models check_placeholders placeholders_in"
        ),
        "keval_programs.process": "Process StandardError running",
        "keval.execute.shielding": "to_the_end",
        "keval_programs.tree": "Entry LedOutError Tree",
    },
)
