"""What plugins import, besides the records in `keval`: the seams, and what passes through them."""

from keval import lazily

__getattr__, __dir__, __all__ = lazily(
    __name__,
    {
        "keval.errors": (
            "ConfigError FieldError InterventionError ModelError OutageError PluginError PluginWarning PreflightError "
            "Problem ServerLostError ToolsMissingError TrialError suggestion"
        ),
        "keval.files": "explained open_input read_input read_kept replacing",
        "keval.processes": "search_path supervised",
        "keval.store.serialization": "dump to_plain",
        "keval.seams.hooks": "hookimpl",
        "keval.seams.installation": "missing_module missing_package package_of",
        "keval.seams.interfaces": (
            "Agent ComparingJudge ContextProvider ContextSource Conversation Judge Metric run_conversation"
        ),
        "keval.dataset.samples": "history_of",
        "keval.seams.contexts": (
            "ClientPolicy Context Isolation JudgeContext Provision ServerSpec Sandbox SandboxedCommand TrialInfo "
            "Workspace"
        ),
        "keval.seams.workspaces": "Check EndOfTrial Finding TextContext WorkspaceProvider",
        "keval.config.evaluation": "size Budget DatasetFile Evaluation",
        "keval.records.end_state": "Artifact CheckResult Conventions EndState GivenText",
        "keval.seams.blank_text": "is_blank",
        "keval.seams.finish_reason": "CONTEXT_WINDOW MAX_OUTPUT_TOKENS REFUSAL SILENCE FinishReason",
        "keval.seams.model_text": "split_reasoning",
        "keval.seams.transcript_builder": "JudgementBuilder TranscriptBuilder report_request reporting_requests",
        "keval.seams.live_events": "LiveEvent",
        "keval.records.trial": "Expectation TrialKey",
        "keval.records.servers": "CallLog McpServer ServerChannel ServerStarts Sharing ToolListing",
        "keval.records.transcript": "Blob ContentKind",
        "keval.records.interventions": "FixedText Intervention",
        "keval.records.cassettes": "ModelTraffic ReplayMissError ServerTrafficLog ServerCassette Traffic Volatile",
        "keval.records.models": (
            "API_WIRES ASKER_HEADER Api Asker Endpoint Exchange Model ModelAccess ModelRequest ModelResponse Next Wire "
            "request_headers response_headers retry_after_seconds Price dollars"
        ),
        "keval.records.usage": "sum_of_counts",
        "keval.execute.models.reply_usage": "read_usage usage_in",
        "keval.seams.infrastructure": (
            "AttemptKey DatasetRequest Middleware ModelProvider ModelProxy ProxyRoute RawRecord RereadableDataset "
            "ServerProxy"
        ),
        "keval.seams.distribution": (
            "Crew CrewExecutor CrewOrder CrewWatcher Ending Executor Job JobOutbox Limits Load Outbox PackedScores "
            "PackedTrial Standing WantedScore Worker"
        ),
        "keval.execute.limits": "RunLimits",
        "keval.records.manifest": "WorkerEntry ScorerEntry",
        "keval.seams.results": "ResultsMirror",
        "keval.records.scores": "SMALL_SHARE Mark Scorer named_band",
        "keval.seams.replies": "RepliesInJson StructuredRequest",
        "keval.score.rubrics": "read_rubric",
        "keval.config.load": "read_record effective load with_data",
        "keval.seams.exporters": "Exported Exporter",
        "keval.run.select": "Selection select",
        "keval.config.secrets": "learn_config",
        "keval.config.source": "Source",
        "keval.plan.build": "make_plan",
        "keval.plan.check": "PlanCheck",
        "keval.plan.plan": "Plan",
        "keval.run.active_run": "ActiveRun RunOptions",
        "keval.run.flow": "run_plan",
        "keval.cli.call": "CommandCall CommandOptions",
        "keval.cli.session": "carry_out run_to_end",
        "keval.store.run": "find_run",
        "keval.cli.options": "budget_option choice_options json_option results_option",
        "keval.cli.console": "data_console message_console print_json print_sections",
        "keval.cli.messages": "foreign redactor tell",
        "keval.records.formats": "counted interval number percent short_number signed",
    },
)
