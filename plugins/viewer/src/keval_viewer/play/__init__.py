"""Play: agents under conditions, side by side, asked by a person; the session is a run like any other.

`Play.open` brings up a config. Each agent under each condition is a column with a conversation of its own. A question
goes to all columns that are on, and each answer becomes a trial: scored by the config's metrics and judges, and
written to a run directory.
"""

from keval_viewer.play.play import Play
from keval_viewer.play.records import Column, Edit, PlayedAnswer, PlayError, Question, QuestionInput, Standings

__all__ = ["Column", "Edit", "Play", "PlayError", "PlayedAnswer", "Question", "QuestionInput", "Standings"]
