"""What the terminal shows of a run: progress, tables and transcripts."""

from keval_report.blocks import Block as Block
from keval_report.claims import Claim as Claim
from keval_report.contexts import (
    ServerDifference as ServerDifference,
    change_words as change_words,
    servers_between as servers_between,
)
from keval_report.effects import verdict_words as verdict_words
from keval_report.end_state import given_words as given_words, kept_words as kept_words, verdict_word as verdict_word
from keval_report.gates import gate_rows as gate_rows, unmet_texts as unmet_texts
from keval_report.history import (
    HistoryCell as HistoryCell,
    HistoryRow as HistoryRow,
    HistoryTable as HistoryTable,
    history_table as history_table,
    left_out_texts as left_out_texts,
)
from keval_report.report import Report as Report
from keval_report.terminal.comparison import arm_block as arm_block, comparison_block as comparison_block
from keval_report.terminal.progress import Progress as Progress
from keval_report.terminal.runs import Headline as Headline, ListedRun as ListedRun
from keval_report.terminal.tools import (
    describe_tool_listings as describe_tool_listings,
    entry_text as entry_text,
    print_tool_listings as print_tool_listings,
)
from keval_report.terminal.trials import worst_trials as worst_trials
from keval_report.totals import loss_texts as loss_texts, total_cost as total_cost, unrun_text as unrun_text
from keval_report.words import (
    display_names as display_names,
    flowed as flowed,
    folded as folded,
    labelled as labelled,
    one_line as one_line,
    padded as padded,
    show_command as show_command,
    with_units as with_units,
    witnesses as witnesses,
)
