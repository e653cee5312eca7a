-- The finished runs under a results directory, derived from their manifest.json and summary.json.
-- `run` is a run's folder below that directory. A metric has a NULL judge; a rubric has the one that grades by it.
-- What is unknown is NULL. Intervals are 95 % intervals, as the run's own report has them.

CREATE TABLE runs (
    run TEXT PRIMARY KEY,
    id TEXT NOT NULL,
    evaluation TEXT NOT NULL,
    started TEXT,                -- ISO time
    elapsed REAL,                -- seconds that the run was worked on
    dataset_sha256 TEXT,
    samples INTEGER,             -- how many samples were selected
    selected TEXT NOT NULL,      -- how: the manifest's `selection`, as JSON
    repetitions INTEGER NOT NULL,
    baseline TEXT NOT NULL,
    trials INTEGER NOT NULL,
    failed INTEGER NOT NULL,     -- trials that failed
    simulated TEXT NOT NULL,     -- the models that were simulated, as a JSON array
    replay_of TEXT,              -- the id of the run whose recording was replayed
    note TEXT,                   -- what who ran it says of it
    usd REAL,                    -- what trials and judgements cost, as far as it is known
    usd_unknown INTEGER NOT NULL -- trials and judgements whose cost is unknown
);

-- What happened in the trials of an agent under a condition. Tokens leave failed attempts out; the cost does not.
CREATE TABLE arms (
    run TEXT NOT NULL REFERENCES runs,
    agent TEXT NOT NULL,
    condition TEXT NOT NULL,
    model TEXT,
    ablation_of TEXT,            -- the condition of which this one lacks a tool, if `ablate` added it
    trials INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    retried INTEGER NOT NULL,
    truncated INTEGER NOT NULL,
    tool_calls INTEGER,
    model_calls INTEGER,
    input_tokens INTEGER,
    output_tokens INTEGER,
    duration REAL,               -- the mean over samples, in seconds
    duration_median REAL,
    duration_p95 REAL,
    usd REAL,
    usd_unknown INTEGER NOT NULL,
    PRIMARY KEY (run, agent, condition)
);

-- What a judge took to grade the answers of an arm.
CREATE TABLE judging (
    run TEXT NOT NULL REFERENCES runs,
    agent TEXT NOT NULL,
    condition TEXT NOT NULL,
    judge TEXT NOT NULL,
    judgements INTEGER NOT NULL,
    model_calls INTEGER,
    input_tokens INTEGER,
    output_tokens INTEGER,
    usd REAL,
    usd_unknown INTEGER NOT NULL,
    PRIMARY KEY (run, agent, condition, judge)
);

-- Metrics and rubrics, in the order of the config, with their scales. `high` is Infinity on a scale without an end.
CREATE TABLE scorers (
    run TEXT NOT NULL REFERENCES runs,
    position INTEGER NOT NULL,
    metric TEXT NOT NULL,
    judge TEXT,
    low REAL NOT NULL,
    high REAL NOT NULL,
    better TEXT NOT NULL,        -- higher, lower
    unit TEXT NOT NULL,
    is_primary INTEGER NOT NULL, -- the config names it as one that decides
    is_property INTEGER NOT NULL,-- it says something of agents whatever they answer
    PRIMARY KEY (run, position)
);

-- The mean of each scorer in each arm, over n samples.
CREATE TABLE scores (
    run TEXT NOT NULL REFERENCES runs,
    agent TEXT NOT NULL,
    condition TEXT NOT NULL,
    metric TEXT NOT NULL,
    judge TEXT,
    n INTEGER NOT NULL,
    mean REAL,
    ci_low REAL,
    ci_high REAL,
    stderr REAL,
    sd REAL,                     -- of the values of answers
    scored INTEGER NOT NULL,
    neutral INTEGER NOT NULL,
    unscored INTEGER NOT NULL,   -- `failed` ones among them
    failed INTEGER NOT NULL
);
CREATE INDEX scores_of ON scores (run);

-- Paired differences of an arm to another of the same run, over the n samples that both have scores for.
-- kind is condition (against the baseline), agent (against the first), or that of a contrast: placebo, ablation, change.
CREATE TABLE effects (
    run TEXT NOT NULL REFERENCES runs,
    kind TEXT NOT NULL,
    metric TEXT NOT NULL,
    judge TEXT,
    agent TEXT NOT NULL,
    condition TEXT NOT NULL,
    against_agent TEXT NOT NULL,
    against_condition TEXT NOT NULL,
    n INTEGER NOT NULL,
    mean REAL,
    against_mean REAL,
    difference REAL,
    ci_low REAL,
    ci_high REAL,
    p_adjusted REAL,
    verdict TEXT NOT NULL        -- better, worse, same, unclear, unknown
);
CREATE INDEX effects_of ON effects (run);

-- The same differences in what an answer takes: metric is seconds, tokens, usd or tool_calls.
CREATE TABLE expenses (
    run TEXT NOT NULL REFERENCES runs,
    kind TEXT NOT NULL,
    metric TEXT NOT NULL,
    agent TEXT NOT NULL,
    condition TEXT NOT NULL,
    against_agent TEXT NOT NULL,
    against_condition TEXT NOT NULL,
    n INTEGER NOT NULL,
    mean REAL,
    against_mean REAL,
    difference REAL,
    ci_low REAL,
    ci_high REAL
);
CREATE INDEX expenses_of ON expenses (run);

CREATE TABLE gates (
    run TEXT NOT NULL REFERENCES runs,
    gate TEXT NOT NULL,          -- with the arm that it is about
    kind TEXT NOT NULL,          -- score, resource, effect, expect, regression
    agent TEXT,
    condition TEXT,
    metric TEXT,
    judge TEXT,
    verdict TEXT NOT NULL,       -- held, failed, undecided
    value REAL,
    ci_low REAL,
    ci_high REAL,
    threshold REAL,
    reason TEXT NOT NULL
);
CREATE INDEX gates_of ON gates (run);

-- What the MCP servers of each condition offered, with the SHA-256 of the definitions of their tools.
CREATE TABLE servers (
    run TEXT NOT NULL REFERENCES runs,
    condition TEXT NOT NULL,
    server TEXT NOT NULL,
    tools TEXT NOT NULL,         -- their names, as a JSON array
    sha256 TEXT,
    PRIMARY KEY (run, condition, server)
);

-- What a run was made of: models, prompts, contexts, tools, versions, options. Two runs differ where these do.
CREATE TABLE parts (
    run TEXT NOT NULL REFERENCES runs,
    position INTEGER NOT NULL,   -- of the kind; the most important one comes first
    kind TEXT NOT NULL,          -- such as `model of agent`, `prompt of`, `version of`
    name TEXT NOT NULL,          -- such as the agent's label; empty if there is one part of the kind
    value TEXT NOT NULL,
    PRIMARY KEY (run, kind, name)
);

-- Folders that are no finished runs, and why.
CREATE TABLE left_out (
    run TEXT PRIMARY KEY,
    reason TEXT NOT NULL
);
