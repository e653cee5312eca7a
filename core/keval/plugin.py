"""What plugins import, besides the records in `keval`: the seams, and what passes through them."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from keval.config.record_file import read_record
    from keval.contexts import (
        BringUp,
        ClientPolicy,
        Context,
        DynamicTools,
        Isolation,
        JudgeContext,
        Provision,
        ServerSpec,
        TrialInfo,
        WorkingFolder,
    )
    from keval.dataset.line_file import LineFile
    from keval.effects import Arm, Effect, Interaction, PerProtocol, Verdict
    from keval.endings import CONTEXT_WINDOW, MAX_OUTPUT_TOKENS, REFUSAL, SILENCE, Ending, EndingKind
    from keval.errors import (
        ConfigError,
        FieldError,
        InterventionError,
        MiddlewareError,
        ModelError,
        PluginError,
        PluginWarning,
        PreflightError,
        Problem,
        ServerLostError,
        ToolsMissingError,
        TrialError,
        suggestion,
    )
    from keval.execute.worker import open_worker
    from keval.hookspecs import hookimpl
    from keval.infrastructure import (
        AppliesMiddleware,
        ConnectedServer,
        DatasetReader,
        DatasetRequest,
        Executor,
        Job,
        Middleware,
        ModelProvider,
        ModelProxy,
        Outbox,
        PriceTable,
        ProxyRoute,
        RawRecord,
        RequestsByProxy,
        RereadableDataset,
        ServerProxy,
        Worker,
    )
    from keval.input_file import open_input, read_input
    from keval.interfaces import (
        Agent,
        AgentChecker,
        Closable,
        ConcurrencyLimited,
        ContextProvider,
        ContextSource,
        Conversation,
        ConversationalAgent,
        DeclaresVolatile,
        Judge,
        Metric,
        PlansSharing,
        Preparable,
        PrerecordedAgent,
        ShowsServerInstructions,
        run_conversation,
    )
    from keval.interventions import Describe, Faults, FixedResult, Intervention, OtherResults, RecordedResults
    from keval.live import Feed, LiveEvent, Tell, Told
    from keval.manifest import (
        AgentEntry,
        ConditionEntry,
        DatasetEntry,
        JudgeEntry,
        ScorerEntry,
        SelectionEntry,
        ServerEntry,
    )
    from keval.models import (
        Asker,
        Endpoint,
        Exchange,
        Model,
        ModelRequest,
        ModelResponse,
        Next,
        Wire,
        request_headers,
        response_headers,
        retry_after_seconds,
    )
    from keval.prices import Cost, Price
    from keval.recorder import Blob, JudgementRecorder, Recorder
    from keval.records import Expectation, TrialKey
    from keval.rubrics import read_rubric
    from keval.scores import named_band
    from keval.sending import report_request, reporting_requests
    from keval.servers import CallLog, McpServer, ServerChannel, Sharing, ToolOffer, Transport
    from keval.store.converter import to_plain
    from keval.store.export import Exported, Exporter
    from keval.store.files import replacing
    from keval.store.jsonl import dump
    from keval.store.rows import SCORE_COLUMNS, TRIAL_COLUMNS, score_row, trial_row
    from keval.summary import (
        Agreement,
        ArmScore,
        ArmTrials,
        Compliance,
        GivenUp,
        JudgePair,
        JudgeSpread,
        JudgingTotal,
        ScorerScale,
        ToolUse,
        UsageTotal,
    )
    from keval.supervisor import supervised
    from keval.tapes import (
        Deliver,
        ModelTraffic,
        ReplayMissError,
        ServerKeeper,
        ServerTape,
        ServerTraffic,
        ServerTrafficKind,
        Traffic,
        TrafficError,
        Volatile,
    )
    from keval.tool_results import Media, ToolResult
    from keval.traffic import Content, ContentKind, ServerExchange
    from keval.variation import Repetitions, VarianceComponents
    from keval.verdicts import GateResult, UnmetExpectation
    from keval.visits import Visits

__all__ = [
    "CONTEXT_WINDOW",
    "MAX_OUTPUT_TOKENS",
    "REFUSAL",
    "SCORE_COLUMNS",
    "SILENCE",
    "TRIAL_COLUMNS",
    "Agent",
    "AgentChecker",
    "AgentEntry",
    "Agreement",
    "AppliesMiddleware",
    "Arm",
    "ArmScore",
    "ArmTrials",
    "Asker",
    "Blob",
    "BringUp",
    "CallLog",
    "ClientPolicy",
    "Closable",
    "Compliance",
    "ConcurrencyLimited",
    "ConditionEntry",
    "ConfigError",
    "ConnectedServer",
    "Content",
    "ContentKind",
    "Context",
    "ContextProvider",
    "ContextSource",
    "Conversation",
    "ConversationalAgent",
    "Cost",
    "DatasetEntry",
    "DatasetReader",
    "DatasetRequest",
    "DeclaresVolatile",
    "Deliver",
    "Describe",
    "DynamicTools",
    "Effect",
    "Ending",
    "EndingKind",
    "Endpoint",
    "Exchange",
    "Executor",
    "Expectation",
    "Exported",
    "Exporter",
    "Faults",
    "Feed",
    "FieldError",
    "FixedResult",
    "GateResult",
    "GivenUp",
    "Interaction",
    "Intervention",
    "InterventionError",
    "Isolation",
    "Job",
    "Judge",
    "JudgeContext",
    "JudgeEntry",
    "JudgePair",
    "JudgeSpread",
    "JudgementRecorder",
    "JudgingTotal",
    "LineFile",
    "LiveEvent",
    "McpServer",
    "Media",
    "Metric",
    "Middleware",
    "MiddlewareError",
    "Model",
    "ModelError",
    "ModelProvider",
    "ModelProxy",
    "ModelRequest",
    "ModelResponse",
    "ModelTraffic",
    "Next",
    "OtherResults",
    "Outbox",
    "PerProtocol",
    "PlansSharing",
    "PluginError",
    "PluginWarning",
    "PreflightError",
    "Preparable",
    "PrerecordedAgent",
    "Price",
    "PriceTable",
    "Problem",
    "Provision",
    "ProxyRoute",
    "RawRecord",
    "RecordedResults",
    "Recorder",
    "Repetitions",
    "ReplayMissError",
    "RequestsByProxy",
    "RereadableDataset",
    "ScorerEntry",
    "ScorerScale",
    "SelectionEntry",
    "ServerChannel",
    "ServerEntry",
    "ServerExchange",
    "ServerKeeper",
    "ServerLostError",
    "ServerProxy",
    "ServerSpec",
    "ServerTape",
    "ServerTraffic",
    "ServerTrafficKind",
    "Sharing",
    "ShowsServerInstructions",
    "Tell",
    "Told",
    "ToolOffer",
    "ToolResult",
    "ToolUse",
    "ToolsMissingError",
    "Traffic",
    "TrafficError",
    "Transport",
    "TrialError",
    "TrialInfo",
    "TrialKey",
    "UnmetExpectation",
    "UsageTotal",
    "VarianceComponents",
    "Verdict",
    "Visits",
    "Volatile",
    "Wire",
    "Worker",
    "WorkingFolder",
    "dump",
    "hookimpl",
    "named_band",
    "open_input",
    "open_worker",
    "read_input",
    "read_record",
    "read_rubric",
    "replacing",
    "report_request",
    "reporting_requests",
    "request_headers",
    "response_headers",
    "retry_after_seconds",
    "run_conversation",
    "score_row",
    "suggestion",
    "supervised",
    "to_plain",
    "trial_row",
]

_HOMES = """
errors endings live traffic interventions input_file records scores models recorder tapes sending servers contexts
tool_results dataset.line_file hookspecs interfaces effects variation prices manifest summary infrastructure rubrics
store.jsonl store.rows store.files store.converter verdicts store.export supervisor config.record_file
execute.worker visits
""".split()  # noqa: SIM905 - a name a line would be thirty lines
"""The modules that have the names; those that import quickly come first."""


def __getattr__(name: str) -> Any:
    # Names are imported when first used: a plugin must not pay for the seams that it does not use.
    if name in __all__:
        for home in _HOMES:
            module = import_module(f"keval.{home}")
            if name in module.__all__:
                globals()[name] = getattr(module, name)
                return globals()[name]
    raise AttributeError(f"module 'keval.plugin' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
