"""The simulated judge: finds what to judge in a prompt, measures it by rules, and fills in the form it is asked for.

The flow is `sections_of` (the prompt's question, golden answer and response), `judge` (the measures, with reasons) and
`suggestions` (the measures in whatever JSON Schema the reply must have). Of two responses, `preference` chooses one; a
schema of claims is filled by `claims`.
"""

from keval_simulator.judge.claims import claims
from keval_simulator.judge.preference import preference
from keval_simulator.judge.prompt import Sections, sections_of
from keval_simulator.judge.verdict import Verdict, judge, suggestions

__all__ = ["Sections", "Verdict", "claims", "judge", "preference", "sections_of", "suggestions"]
