"""What plugins import, besides the records in `keval`: the seams, and what passes through them."""

# What all plugins may use
# Others
from keval.config.derived_contexts import with_bases as with_bases
from keval.config.evaluation import DatasetFile as DatasetFile, Evaluation as Evaluation
from keval.config.load import (
    effective as effective,
    load as load,
    read_record as read_record,
    with_data as with_data,
)
from keval.config.secrets import learn_config as learn_config
from keval.config.select import Selection as Selection, select as select
from keval.config.source import Source as Source
from keval.dataset.read import read_dataset as read_dataset
from keval.dataset.samples import Samples as Samples, sample_of as sample_of
from keval.errors import (
    ConfigError as ConfigError,
    FieldError as FieldError,
    InterventionError as InterventionError,
    MiddlewareError as MiddlewareError,
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
from keval.execute.trial.worker import open_worker as open_worker
from keval.files import (
    LineFile as LineFile,
    explained as explained,
    open_input as open_input,
    read_input as read_input,
    replacing as replacing,
)
from keval.processes import supervised as supervised
from keval.records.cassettes import (
    Deliver as Deliver,
    ModelTraffic as ModelTraffic,
    ReplayMissError as ReplayMissError,
    ServerKeeper as ServerKeeper,
    ServerTape as ServerTape,
    ServerTraffic as ServerTraffic,
    ServerTrafficKind as ServerTrafficKind,
    Traffic as Traffic,
    TrafficError as TrafficError,
    Volatile as Volatile,
)
from keval.records.effects import (
    Arm as Arm,
    Effect as Effect,
    Interaction as Interaction,
    PerProtocol as PerProtocol,
    Repetitions as Repetitions,
    VarianceComponents as VarianceComponents,
    Verdict as Verdict,
)
from keval.records.interventions import (
    Describe as Describe,
    Faults as Faults,
    FixedResult as FixedResult,
    Intervention as Intervention,
    OtherResults as OtherResults,
    RecordedResults as RecordedResults,
)
from keval.records.manifest import (
    AgentEntry as AgentEntry,
    ConditionEntry as ConditionEntry,
    DatasetEntry as DatasetEntry,
    JudgeEntry as JudgeEntry,
    ScorerEntry as ScorerEntry,
    SelectionEntry as SelectionEntry,
    ServerEntry as ServerEntry,
)

# Models, middleware and prices
from keval.records.models import (
    Asker as Asker,
    Endpoint as Endpoint,
    Exchange as Exchange,
    Model as Model,
    ModelRequest as ModelRequest,
    ModelResponse as ModelResponse,
    Next as Next,
    Wire as Wire,
    request_headers as request_headers,
    response_headers as response_headers,
    retry_after_seconds as retry_after_seconds,
)
from keval.records.prices import Cost as Cost, Price as Price
from keval.records.sample import Expectation as Expectation

# Metrics, judges and rubrics
from keval.records.scores import named_band as named_band

# Contexts, MCP servers, and the proxy between them and agents
from keval.records.servers import (
    CallLog as CallLog,
    McpServer as McpServer,
    ServerChannel as ServerChannel,
    Sharing as Sharing,
    ToolOffer as ToolOffer,
    Transport as Transport,
)
from keval.records.summary import (
    Agreement as Agreement,
    ArmScore as ArmScore,
    ArmTrials as ArmTrials,
    Compliance as Compliance,
    GateResult as GateResult,
    GivenUp as GivenUp,
    JudgePair as JudgePair,
    JudgeSpread as JudgeSpread,
    JudgingTotal as JudgingTotal,
    ScorerScale as ScorerScale,
    ToolUse as ToolUse,
    UnmetExpectation as UnmetExpectation,
    UsageTotal as UsageTotal,
)
from keval.records.tool_results import Media as Media, ToolResult as ToolResult
from keval.records.traffic import (
    Blob as Blob,
    Content as Content,
    ContentKind as ContentKind,
    ServerExchange as ServerExchange,
)
from keval.records.trial import TrialKey as TrialKey
from keval.run.interactive import InteractiveRun as InteractiveRun, OfferedTool as OfferedTool
from keval.run.trial_conversation import STOPPED as STOPPED, TrialConversation as TrialConversation
from keval.run.visits import Visits as Visits
from keval.score.rubrics import read_rubric as read_rubric
from keval.seams.contexts import (
    BringUp as BringUp,
    ClientPolicy as ClientPolicy,
    Context as Context,
    DynamicTools as DynamicTools,
    Isolation as Isolation,
    JudgeContext as JudgeContext,
    Provision as Provision,
    ServerSpec as ServerSpec,
    TrialInfo as TrialInfo,
    WorkingFolder as WorkingFolder,
)
from keval.seams.finish_reasons import (
    CONTEXT_WINDOW as CONTEXT_WINDOW,
    MAX_OUTPUT_TOKENS as MAX_OUTPUT_TOKENS,
    REFUSAL as REFUSAL,
    SILENCE as SILENCE,
    Ending as Ending,
    EndingKind as EndingKind,
)
from keval.seams.hooks import hookimpl as hookimpl

# Proxies, datasets, executors
from keval.seams.infrastructure import (
    AppliesMiddleware as AppliesMiddleware,
    ConnectedServer as ConnectedServer,
    DatasetReader as DatasetReader,
    DatasetRequest as DatasetRequest,
    Executor as Executor,
    Job as Job,
    Middleware as Middleware,
    ModelProvider as ModelProvider,
    ModelProxy as ModelProxy,
    Outbox as Outbox,
    PriceTable as PriceTable,
    ProxyRoute as ProxyRoute,
    RawRecord as RawRecord,
    RequestsByProxy as RequestsByProxy,
    RereadableDataset as RereadableDataset,
    ServerProxy as ServerProxy,
    Worker as Worker,
)

# Agents
from keval.seams.interfaces import (
    Agent as Agent,
    AgentChecker as AgentChecker,
    Closable as Closable,
    ConcurrencyLimited as ConcurrencyLimited,
    ContextProvider as ContextProvider,
    ContextSource as ContextSource,
    Conversation as Conversation,
    ConversationalAgent as ConversationalAgent,
    DeclaresVolatile as DeclaresVolatile,
    Judge as Judge,
    Metric as Metric,
    PlansSharing as PlansSharing,
    Preparable as Preparable,
    PrerecordedAgent as PrerecordedAgent,
    ShowsServerInstructions as ShowsServerInstructions,
    run_conversation as run_conversation,
)
from keval.seams.live import Feed as Feed, LiveEvent as LiveEvent, Tell as Tell, Told as Told
from keval.seams.transcript_builder import (
    JudgementRecorder as JudgementRecorder,
    Recorder as Recorder,
    report_request as report_request,
    reporting_requests as reporting_requests,
)
from keval.store.converter import to_plain as to_plain

# Reading runs, and exporters
from keval.store.exporters import Exported as Exported, Exporter as Exporter
from keval.store.lines import dump as dump
from keval.store.tables import (
    SCORE_COLUMNS as SCORE_COLUMNS,
    TRIAL_COLUMNS as TRIAL_COLUMNS,
    score_row as score_row,
    trial_row as trial_row,
)
