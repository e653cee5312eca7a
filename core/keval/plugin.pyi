"""What plugins import, besides the records in `keval`: the seams, and what passes through them.

The names are grouped by what they are for.
"""
# ruff: isort: skip_file

# Errors, files and processes, for every plugin
from keval.errors import (
    ConfigError as ConfigError,
    FieldError as FieldError,
    InterventionError as InterventionError,
    ModelError as ModelError,
    PluginError as PluginError,
    PluginWarning as PluginWarning,
    PreflightError as PreflightError,
    Problem as Problem,
    ServerLostError as ServerLostError,
    ToolsMissingError as ToolsMissingError,
    TrialError as TrialError,
    suggestion as suggestion,
)
from keval.files import (
    explained as explained,
    open_input as open_input,
    read_input as read_input,
    replacing as replacing,
)
from keval.processes import search_path as search_path, supervised as supervised
from keval.store.serialization import dump as dump
from keval.store.serialization import to_plain as to_plain
from keval.seams.hooks import hookimpl as hookimpl
from keval.seams.installation import missing_module as missing_module

# Agents: what an adapter implements, is handed, and fills
from keval.seams.interfaces import (
    Agent as Agent,
    ComparingJudge as ComparingJudge,
    ContextProvider as ContextProvider,
    ContextSource as ContextSource,
    Conversation as Conversation,
    Judge as Judge,
    Metric as Metric,
    run_conversation as run_conversation,
)
from keval.dataset.samples import history_of as history_of
from keval.seams.contexts import (
    Context as Context,
    Isolation as Isolation,
    JudgeContext as JudgeContext,
    Provision as Provision,
    ServerSpec as ServerSpec,
    Sandbox as Sandbox,
    TrialInfo as TrialInfo,
)
from keval.seams.workspaces import (
    Check as Check,
    EndOfTrial as EndOfTrial,
    Finding as Finding,
    WorkspaceProvider as WorkspaceProvider,
)
from keval.records.end_state import (
    Conventions as Conventions,
    EndState as EndState,
    GivenText as GivenText,
)
from keval.seams.blank_text import is_blank as is_blank
from keval.seams.finish_reason import (
    CONTEXT_WINDOW as CONTEXT_WINDOW,
    MAX_OUTPUT_TOKENS as MAX_OUTPUT_TOKENS,
    REFUSAL as REFUSAL,
    SILENCE as SILENCE,
    FinishReason as FinishReason,
)
from keval.seams.model_text import split_reasoning as split_reasoning
from keval.seams.transcript_builder import (
    TranscriptBuilder as TranscriptBuilder,
    report_request as report_request,
    reporting_requests as reporting_requests,
)
from keval.seams.live_events import LiveEvent as LiveEvent

# MCP servers, what they return, and changes of contexts
from keval.records.servers import McpServer as McpServer, ServerChannel as ServerChannel, Sharing as Sharing
from keval.records.transcript import (
    Blob as Blob,
    Citation as Citation,
    ContentKind as ContentKind,
)
from keval.records.interventions import (
    FixedText as FixedText,
    Intervention as Intervention,
)
from keval.records.cassettes import Volatile as Volatile

# Models, middleware, prices and datasets
from keval.records.models import (
    API_WIRES as API_WIRES,
    Api as Api,
    Endpoint as Endpoint,
    Model as Model,
    ModelAccess as ModelAccess,
    ModelRequest as ModelRequest,
    ModelResponse as ModelResponse,
    Next as Next,
    Wire as Wire,
    retry_after_seconds as retry_after_seconds,
    Price as Price,
)
from keval.records.usage import sum_of_counts as sum_of_counts
from keval.execute.models.reply_usage import read_usage as read_usage, usage_in as usage_in
from keval.seams.infrastructure import (
    DatasetRequest as DatasetRequest,
    Middleware as Middleware,
    ModelProvider as ModelProvider,
    RawRecord as RawRecord,
    RereadableDataset as RereadableDataset,
)

# Executors and workers
from keval.seams.distribution import (
    Crew as Crew,
    CrewExecutor as CrewExecutor,
    CrewOrder as CrewOrder,
    CrewWatcher as CrewWatcher,
    Executor as Executor,
    Job as Job,
    Limits as Limits,
)
from keval.execute.limits import RunLimits as RunLimits

# Metrics, judges and rubrics
from keval.records.scores import named_band as named_band
from keval.seams.replies import RepliesInJson as RepliesInJson, StructuredRequest as StructuredRequest
from keval.score.rubrics import read_rubric as read_rubric
from keval.config.load import read_record as read_record

# Runs for exporters
from keval.seams.exporters import Exported as Exported, Exporter as Exporter
from keval.records.manifest import ScorerEntry as ScorerEntry

# The names from here on may change in any version.

# Extensions: keys of a config, options of commands, checks of a plan, steps of a run
from keval.config.evaluation import Evaluation as Evaluation
from keval.plan.check import PlanCheck as PlanCheck
from keval.plan.plan import Plan as Plan
from keval.run.active_run import ActiveRun as ActiveRun
from keval.cli.call import CommandCall as CommandCall, CommandOptions as CommandOptions
