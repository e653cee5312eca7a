"""Running an agent's program for one trial: its folder, environment, process, and what it is told."""

from keval.execute.shielding import to_the_end as to_the_end
from keval_programs.confining import (
    Confinement as Confinement,
    confinement as confinement,
    inside as inside,
    needed as needed,
)
from keval_programs.environments import (
    environment as environment,
    find_program as find_program,
    whole_path as whole_path,
    words as words,
)
from keval_programs.folder import (
    FOLDER_PATHS as FOLDER_PATHS,
    OF_PROGRAMS as OF_PROGRAMS,
    FolderConventions as FolderConventions,
    TrialFolder as TrialFolder,
    open_folder as open_folder,
)
from keval_programs.placeholders import (
    PLACEHOLDERS as PLACEHOLDERS,
    SERVERS_REFUSED as SERVERS_REFUSED,
    Placeholders as Placeholders,
    TextTemplate as TextTemplate,
    check_models as check_models,
    check_placeholders as check_placeholders,
    placeholders_in as placeholders_in,
)
from keval_programs.process import Process as Process, StandardError as StandardError, running as running
from keval_programs.tree import Entry as Entry, LedOutError as LedOutError, Tree as Tree
