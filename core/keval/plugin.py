"""What plugins import, besides the records in `keval`: the seams, and what passes through them."""

from keval import lazily

__getattr__, __dir__, __all__ = lazily(
    __name__,
    {
        "keval.errors": (
            "ConfigError FieldError InterventionError ModelError OutageError PluginError PluginWarning PreflightError "
            "Problem ServerLostError ToolsMissingError TrialError suggestion"
        ),
        "keval.files": "LineFile explained open_input read_input read_kept replacing",
        "keval.processes": "search_path supervised",
        "keval.store.serialization": "dump to_plain",
        "keval.seams.hooks": "hookimpl",
        "keval.seams.installation": "Installation missing_module missing_package package_of",
        "keval.seams.interfaces": (
            "Agent AgentChecker AgentRater Closable ComparingJudge ConcurrencyLimited ContextProvider ContextSource "
            "Conversation ConversationalAgent DeclaresVolatile FreezesOptions Judge MadeOfFiles Metric PlansSharing "
            "Preparable PrerecordedAgent RefusesServers ShowsServerInstructions run_conversation"
        ),
        "keval.dataset.samples": "history_of Samples sample_of",
        "keval.seams.contexts": (
            "BringUp ClientPolicy Context DynamicTools Isolation JudgeContext Provision ServerSpec Sandbox "
            "SandboxedCommand TrialInfo WorkingFolder WORKSPACE Workspace works_in_workspace"
        ),
        "keval.seams.workspaces": "Check EndOfTrial Finding TextContext WorksInFolder WorkspaceProvider",
        "keval.config.evaluation": "is_size size Budget DatasetFile Evaluation",
        "keval.records.end_state": "Artifact CheckResult Conventions EndState FileChange GivenText",
        "keval.seams.blank_text": "is_blank",
        "keval.seams.finish_reason": "CONTEXT_WINDOW MAX_OUTPUT_TOKENS REFUSAL SILENCE FinishReason",
        "keval.seams.model_text": "split_reasoning",
        "keval.seams.transcript_builder": (
            "JudgementBuilder TextLog TranscriptBuilder report_request reporting_requests"
        ),
        "keval.seams.live_events": "LiveEvent EmitEvent",
        "keval.records.trial": "PLACEHOLDER Expectation TrialKey",
        "keval.records.servers": "CallLog McpServer ServerChannel ServerStarts Sharing ToolListing Transport",
        "keval.records.transcript": "Blob Content ContentKind ServerExchange",
        "keval.records.interventions": "Describe Faults FixedResult FixedText Intervention ShuffledResults",
        "keval.records.cassettes": (
            "Deliver ModelTraffic ReplayMissError ServerTrafficLog ServerCassette ServerTraffic Traffic TrafficError "
            "Volatile"
        ),
        "keval.records.models": (
            "API_WIRES ASKER_HEADER Api Asker Endpoint Exchange Model ModelAccess ModelRequest ModelResponse Next Wire "
            "request_headers response_headers retry_after_seconds Cost Price dollars"
        ),
        "keval.records.usage": "sum_of_counts",
        "keval.execute.models.reply_usage": "read_usage usage_in",
        "keval.seams.infrastructure": (
            "AppliesMiddleware AttemptKey ConnectedServer DatasetReader DatasetRequest Middleware ModelProvider "
            "ModelProxy PriceTable ProxyRoute RawRecord RequestsByProxy RereadableDataset ServerProxy UsageByProxy"
        ),
        "keval.seams.distribution": (
            "Crew CrewExecutor CrewOrder CrewWatcher Ending Executor Job JobOutbox Limits Load Outbox PackedScores "
            "PackedTrial Standing WantedScore Worker"
        ),
        "keval.execute.limits": "RunLimits",
        "keval.records.manifest": "WorkerEntry ScorerEntry",
        "keval.seams.results": "MARKER ResultsMirror mirror_of results_folder",
        "keval.records.scores": "SMALL_SHARE Mark Scorer marks_of named_band",
        "keval.seams.replies": "RepliesInJson StructuredRequest",
        "keval.score.rubrics": "read_rubric",
        "keval.config.load": "read_record effective load read_evaluation with_data",
        "keval.seams.exporters": "Exported Exporter",
        "keval.run.select": "Selection select",
        "keval.config.secrets": "learn_config",
        "keval.config.source": "Source",
        "keval.config.variables": "filling",
        "keval.config.derived_contexts": "with_bases",
        "keval.dataset.read": "read_dataset",
        "keval.plan.build": "make_plan",
        "keval.plan.plan": "Plan",
        "keval.run.active_run": "RunOptions",
        "keval.run.flow": "run_plan",
        "keval.cli.session": "carry_out run_to_end",
        "keval.store.lock": "fetch_run",
        "keval.store.run": "find_run list_runs",
        "keval.store.live_state": "LiveState EndpointPace TrialInFlight",
        "keval.cli.options": "budget_option choice_options json_option results_option results_type",
        "keval.cli.console": "data_console message_console print_json print_sections",
        "keval.cli.messages": "foreign redactor tell",
        "keval.store.seal": "SealCheck",
        "keval.records.formats": "counted interval number percent short_number signed time_span",
    },
)
