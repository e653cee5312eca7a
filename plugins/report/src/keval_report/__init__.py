"""What the terminal shows of a run: progress, tables and transcripts."""

from keval import lazily

__getattr__, __dir__, __all__ = lazily(
    __name__,
    {
        "keval_report.blocks": "Block",
        "keval_report.claims": "Claim",
        "keval_report.contexts": "ServerDifference change_words servers_between",
        "keval_report.effects": "verdict_words",
        "keval_report.end_state": "given_words kept_words verdict_word",
        "keval_report.gates": "gate_rows unmet_texts",
        "keval_report.history": "HistoryCell HistoryRow HistoryTable history_table left_out_texts",
        "keval_report.report": "Report",
        "keval_report.terminal.comparison": "arm_block comparison_block",
        "keval_report.terminal.progress": "Progress",
        "keval_report.terminal.runs": "Headline ListedRun",
        "keval_report.terminal.tools": "describe_tool_listings entry_text print_tool_listings",
        "keval_report.terminal.trials": "worst_trials",
        "keval_report.totals": "loss_texts total_cost unrun_text",
        "keval_report.words": "display_names flowed folded labelled one_line padded show_command with_units witnesses",
    },
)
