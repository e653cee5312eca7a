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
    OutageError as OutageError,
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
    read_kept as read_kept,
    replacing as replacing,
)
from keval.processes import search_path as search_path, supervised as supervised
from keval.store.serialization import dump as dump
from keval.store.serialization import to_plain as to_plain
from keval.seams.hooks import hookimpl as hookimpl
from keval.seams.installation import (
    missing_module as missing_module,
    missing_package as missing_package,
    package_of as package_of,
)

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
    ClientPolicy as ClientPolicy,
    Context as Context,
    Isolation as Isolation,
    JudgeContext as JudgeContext,
    Provision as Provision,
    ServerSpec as ServerSpec,
    Sandbox as Sandbox,
    SandboxedCommand as SandboxedCommand,
    TrialInfo as TrialInfo,
    Workspace as Workspace,
)
from keval.seams.workspaces import (
    Check as Check,
    EndOfTrial as EndOfTrial,
    Finding as Finding,
    TextContext as TextContext,
    WorkspaceProvider as WorkspaceProvider,
)
from keval.config.evaluation import size as size
from keval.records.end_state import (
    Artifact as Artifact,
    CheckResult as CheckResult,
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
    JudgementBuilder as JudgementBuilder,
    TranscriptBuilder as TranscriptBuilder,
    report_request as report_request,
    reporting_requests as reporting_requests,
)
from keval.seams.live_events import LiveEvent as LiveEvent
from keval.records.trial import Expectation as Expectation, TrialKey as TrialKey

# MCP servers and the tap
from keval.records.servers import (
    CallLog as CallLog,
    McpServer as McpServer,
    ServerChannel as ServerChannel,
    ServerStarts as ServerStarts,
    Sharing as Sharing,
    ToolListing as ToolListing,
)
from keval.records.transcript import (
    Blob as Blob,
    ContentKind as ContentKind,
)
from keval.records.interventions import (
    FixedText as FixedText,
    Intervention as Intervention,
)
from keval.records.cassettes import (
    ModelTraffic as ModelTraffic,
    ReplayMissError as ReplayMissError,
    ServerTrafficLog as ServerTrafficLog,
    ServerCassette as ServerCassette,
    Traffic as Traffic,
    Volatile as Volatile,
)

# Models, middleware, prices, proxies, datasets, executors, results elsewhere
from keval.records.models import (
    API_WIRES as API_WIRES,
    ASKER_HEADER as ASKER_HEADER,
    Api as Api,
    Asker as Asker,
    Endpoint as Endpoint,
    Exchange as Exchange,
    Model as Model,
    ModelAccess as ModelAccess,
    ModelRequest as ModelRequest,
    ModelResponse as ModelResponse,
    Next as Next,
    Wire as Wire,
    request_headers as request_headers,
    response_headers as response_headers,
    retry_after_seconds as retry_after_seconds,
    Price as Price,
    dollars as dollars,
)
from keval.records.usage import sum_of_counts as sum_of_counts
from keval.execute.models.reply_usage import read_usage as read_usage, usage_in as usage_in
from keval.seams.infrastructure import (
    AttemptKey as AttemptKey,
    DatasetRequest as DatasetRequest,
    Middleware as Middleware,
    ModelProvider as ModelProvider,
    ModelProxy as ModelProxy,
    ProxyRoute as ProxyRoute,
    RawRecord as RawRecord,
    RereadableDataset as RereadableDataset,
    ServerProxy as ServerProxy,
)

# Executors and workers
from keval.seams.distribution import (
    Crew as Crew,
    CrewExecutor as CrewExecutor,
    CrewOrder as CrewOrder,
    CrewWatcher as CrewWatcher,
    Ending as Ending,
    Executor as Executor,
    Job as Job,
    JobOutbox as JobOutbox,
    Limits as Limits,
    Load as Load,
    Outbox as Outbox,
    PackedScores as PackedScores,
    PackedTrial as PackedTrial,
    Standing as Standing,
    WantedScore as WantedScore,
    Worker as Worker,
)
from keval.execute.limits import RunLimits as RunLimits
from keval.records.manifest import WorkerEntry as WorkerEntry
from keval.seams.results import (
    ResultsMirror as ResultsMirror,
)

# Metrics, judges and rubrics
from keval.records.scores import (
    SMALL_SHARE as SMALL_SHARE,
    Mark as Mark,
    Scorer as Scorer,
    named_band as named_band,
)
from keval.seams.replies import RepliesInJson as RepliesInJson, StructuredRequest as StructuredRequest
from keval.score.rubrics import read_rubric as read_rubric
from keval.config.load import read_record as read_record

# Runs for exporters
from keval.seams.exporters import Exported as Exported, Exporter as Exporter
from keval.records.manifest import ScorerEntry as ScorerEntry

# The names from here on may change in any version.

# Configs and runs for interactive front ends
from keval.config.load import (
    effective as effective,
    load as load,
    with_data as with_data,
)
from keval.config.evaluation import Budget as Budget, DatasetFile as DatasetFile, Evaluation as Evaluation
from keval.run.select import Selection as Selection, select as select
from keval.config.secrets import learn_config as learn_config
from keval.config.source import Source as Source
from keval.plan.build import make_plan as make_plan
from keval.plan.check import PlanCheck as PlanCheck
from keval.plan.plan import Plan as Plan
from keval.run.active_run import ActiveRun as ActiveRun, RunOptions as RunOptions
from keval.run.flow import run_plan as run_plan
from keval.cli.call import CommandCall as CommandCall, CommandOptions as CommandOptions
from keval.cli.session import carry_out as carry_out, run_to_end as run_to_end
from keval.store.run import find_run as find_run
from keval.cli.options import (
    budget_option as budget_option,
    choice_options as choice_options,
    json_option as json_option,
    results_option as results_option,
)
from keval.cli.console import (
    data_console as data_console,
    message_console as message_console,
    print_json as print_json,
    print_sections as print_sections,
)
from keval.cli.messages import foreign as foreign, redactor as redactor, tell as tell

# Findings for who shows them: comparisons, progress, timelines, and the report as data
from keval.records.formats import (
    counted as counted,
    interval as interval,
    number as number,
    percent as percent,
    short_number as short_number,
    signed as signed,
)
