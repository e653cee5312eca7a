"""keval measures what a context does for an AI agent.

This module has what the author of a metric needs, and what reads a run: `from keval import Score, Trial`, or
`keval.open_run("latest")`. What other plugins need besides is in `keval.plugin`.
"""

from keval.errors import KevalError as KevalError, RunError as RunError
from keval.records.manifest import Manifest as Manifest
from keval.records.scores import (
    Rubric as Rubric,
    Scale as Scale,
    Score as Score,
    ScoreLine as ScoreLine,
)
from keval.records.transcript import (
    Message as Message,
    ToolCall as ToolCall,
    Transcript as Transcript,
)
from keval.records.trial import Failure as Failure, Sample as Sample, Trial as Trial
from keval.records.usage import Usage as Usage
from keval.store.run import Run as Run, open_run as open_run
from keval_analysis.findings.summary import Summary as Summary
from keval_viewer.interactive.evaluate import evaluate as evaluate
from keval_viewer.interactive.session import Session as Session

__version__: str
