"""What plugins import, besides the records in `keval`: the seams, and what passes through them."""

from keval import lazily

__getattr__, __dir__, __all__ = lazily(
    __name__,
    {
        "keval.errors": (
            "ConfigError FieldError InterventionError ModelError PluginError PluginWarning PreflightError Problem "
            "ServerLostError ToolsMissingError TrialError suggestion"
        ),
        "keval.files": "explained open_input read_input replacing",
        "keval.processes": "search_path supervised",
        "keval.store.serialization": "dump to_plain",
        "keval.seams.hooks": "hookimpl",
        "keval.seams.installation": "missing_module",
        "keval.seams.interfaces": (
            "Agent ComparingJudge ContextProvider ContextSource Conversation Judge Metric run_conversation"
        ),
        "keval.dataset.samples": "history_of",
        "keval.seams.contexts": "Context Isolation JudgeContext Provision ServerSpec Sandbox TrialInfo",
        "keval.seams.workspaces": "Check EndOfTrial Finding WorkspaceProvider",
        "keval.records.end_state": "Conventions EndState GivenText",
        "keval.seams.blank_text": "is_blank",
        "keval.seams.finish_reason": "CONTEXT_WINDOW MAX_OUTPUT_TOKENS REFUSAL SILENCE FinishReason",
        "keval.seams.model_text": "split_reasoning",
        "keval.seams.transcript_builder": "TranscriptBuilder report_request reporting_requests",
        "keval.seams.live_events": "LiveEvent",
        "keval.records.servers": "McpServer ServerChannel Sharing",
        "keval.records.transcript": "Blob Citation ContentKind",
        "keval.records.interventions": "FixedText Intervention",
        "keval.records.cassettes": "Volatile",
        "keval.records.models": (
            "API_WIRES Api Endpoint Model ModelAccess ModelRequest ModelResponse Next Wire retry_after_seconds Price"
        ),
        "keval.records.usage": "sum_of_counts",
        "keval.execute.models.reply_usage": "read_usage usage_in",
        "keval.seams.infrastructure": "DatasetRequest Middleware ModelProvider RawRecord RereadableDataset",
        "keval.seams.distribution": "Crew CrewExecutor CrewOrder CrewWatcher Executor Job Limits",
        "keval.execute.limits": "RunLimits",
        "keval.records.scores": "named_band",
        "keval.seams.replies": "RepliesInJson StructuredRequest",
        "keval.score.rubrics": "read_rubric",
        "keval.config.load": "read_record",
        "keval.seams.exporters": "Exported Exporter",
        "keval.records.manifest": "ScorerEntry",
        "keval.config.evaluation": "Evaluation",
        "keval.plan.check": "PlanCheck",
        "keval.plan.plan": "Plan",
        "keval.run.active_run": "ActiveRun",
        "keval.cli.call": "CommandCall CommandOptions",
    },
)
