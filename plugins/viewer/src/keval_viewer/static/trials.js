// The table of trials: all are filtered and sorted here, and only the rows that can be seen are elements.
const HEIGHT = 34;
const BEYOND = 12;
const STEPS = [0.05, 0.25, 0.5, 0.75];
const SVG = "http://www.w3.org/2000/svg";

const form = document.getElementById("filters");
const found = document.getElementById("found");
const frame = document.getElementById("frame");
const body = frame?.querySelector("tbody");
const fields = form.elements;

const element = (name, { text, ...attributes } = {}, ...children) => {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) if (value !== undefined) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  made.append(...children);
  return made;
};

const figure = (value, digits = 2) => {
  if (value === null || value === undefined) return "–";
  if (value === "n") return "neutral";
  return Math.abs(value) >= 100 ? Math.round(value).toLocaleString("en") : value.toFixed(digits);
};

// How good a score is, from -1 to 1; of a scale without an end, against the highest score there is.
const goodness = (metric, value, highest) => {
  const high = metric.high ?? highest;
  if (typeof value !== "number" || !(high > metric.low)) return null;
  const share = 2 * (value - metric.low) / (high - metric.low) - 1;
  return Math.max(-1, Math.min(1, metric.better === "lower" ? -share : share));
};

const level = (share) => {
  const step = STEPS.filter((start) => Math.abs(share) >= start).length;
  return step === 0 ? "z" : `${share > 0 ? "b" : "w"}${step}`;
};

// The tiles of a row, one a metric; what has no score has no tile.
const tiles = (shares, width, told) => {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("class", "heat");
  svg.setAttribute("width", width);
  svg.setAttribute("height", 14);
  svg.setAttribute("role", "img");
  const title = document.createElementNS(SVG, "title");
  title.textContent = told;
  svg.append(title);
  shares.forEach((share, place) => {
    if (share === null) return;
    const tile = document.createElementNS(SVG, "path");
    tile.setAttribute("class", level(share));
    tile.setAttribute("d", `M${place * 8} 0h7v14h-7z`);
    svg.append(tile);
  });
  return svg;
};

const begin = ({ agents, conditions, samples, metrics, trials, scores }) => {
  const count = trials.id.length;
  const texts = samples.map(([id, asked]) => `${id}\n${asked}`.toLowerCase());
  const highest = scores.map((column) => column.reduce((most, value) => (typeof value === "number" && value > most ? value : most), -Infinity));
  const shares = metrics.map((metric, at) => scores[at].map((value) => goodness(metric, value, highest[at])));
  const rows = new Map();
  let order = [];
  let state = {};

  for (const [at, metric] of metrics.entries()) {
    fields.metric.append(element("option", { value: String(at), text: metric.unit ? `${metric.name} (${metric.unit})` : metric.name }));
  }
  if (metrics.length === 0) fields.metric.closest("label").hidden = true;
  const scored = metrics.length > 0;
  for (const head of frame.querySelectorAll(".heat-head, .score-head")) head.hidden = !scored;

  // What is asked for is in the URL, and what is usual is not.
  const read = () => {
    const given = new URLSearchParams(location.search);
    for (const name of ["q", "agent", "condition", "outcome", "metric"]) {
      const value = name === "metric" ? String(Math.max(0, metrics.findIndex((each) => each.name === given.get(name)))) : given.get(name) ?? "";
      fields[name].value = value;
    }
    state.sort = given.get("sort") ?? "";
  };

  const write = () => {
    const query = new URLSearchParams([...new FormData(form)].filter(([name, value]) => value !== "" && name !== "metric"));
    const metric = metrics[Number(fields.metric.value)];
    if (metric && fields.metric.selectedIndex > 0) query.set("metric", metric.name);
    if (state.sort) query.set("sort", state.sort);
    history.replaceState(null, "", query.size ? `?${query}` : location.pathname);
  };

  const outcomes = {
    answered: (at) => trials.failure[at] === null,
    failed: (at) => trials.failure[at] !== null,
    retried: (at) => trials.retried[at] > 0,
    unscored: (at) => scores.some((column) => column[at] === null),
  };

  const keys = {
    sample: (at) => trials.sample[at],
    agent: (at) => trials.agent[at],
    condition: (at) => trials.condition[at],
    repetition: (at) => trials.repetition[at],
    score: (at) => { const value = scores[state.metric]?.[at]; return typeof value === "number" ? value : null; },
    seconds: (at) => trials.seconds[at],
    tokens: (at) => trials.tokens[at],
    calls: (at) => trials.calls[at],
    failure: (at) => trials.failure[at],
  };

  const told = (at) => metrics.map((metric, place) => `${metric.name} ${figure(scores[place][at])}`).join("\n");

  const row = (at) => {
    if (rows.has(at)) return rows.get(at);
    const [id, asked] = samples[trials.sample[at]];
    const failure = trials.failure[at];
    const link = element("a", { "data-row": "", href: `${form.dataset.trials}${encodeURIComponent(trials.id[at])}` },
      element("bdi", { text: id }), " ", element("span", { class: "dim foreign", text: asked }));
    const outcome = element("td", { class: failure === null ? undefined : "lost" }, element("bdi", { text: failure ?? "answered" }));
    if (trials.retried[at]) outcome.append(" ", element("span", { class: "dim", text: `${trials.retried[at] + 1} attempts` }));
    const made = element("tr", {},
      element("th", { scope: "row" }, link),
      element("td", {}, element("bdi", { text: agents[trials.agent[at]] })),
      element("td", {}, element("bdi", { text: conditions[trials.condition[at]] })),
      element("td", { class: "num", text: String(trials.repetition[at]) }),
      ...(scored ? [element("td", { class: "tiles" }, tiles(shares.map((column) => column[at]), metrics.length * 8, told(at))),
        element("td", { class: "num score" })] : []),
      element("td", { class: "num", text: figure(trials.seconds[at]) }),
      element("td", { class: "num", text: trials.tokens[at]?.toLocaleString("en") ?? "–" }),
      element("td", { class: "num", text: trials.calls[at]?.toLocaleString("en") ?? "–" }),
      outcome);
    rows.set(at, made);
    return made;
  };

  const spacer = (place) => {
    const made = element("tr", { class: "spacer", "aria-hidden": "true" }, element("td", { colspan: "10" }));
    body[place](made);
    return made;
  };

  body.replaceChildren();
  const above = spacer("append");
  const below = spacer("append");

  // Make elements of what can be seen, and a little more. Rows that stay are not touched, so that the focus stays.
  const draw = () => {
    const first = Math.max(0, Math.floor(frame.scrollTop / HEIGHT) - BEYOND);
    const last = Math.min(order.length, Math.ceil((frame.scrollTop + frame.clientHeight) / HEIGHT) + BEYOND);
    const wanted = new Set(order.slice(first, last));
    for (const [at, made] of rows) {
      if (wanted.has(at) || made.contains(document.activeElement)) continue;
      made.remove();
      rows.delete(at);
    }
    let before = above;
    for (let place = first; place < last; place += 1) {
      const made = row(order[place]);
      made.setAttribute("aria-rowindex", String(place + 2));
      if (scored) made.querySelector(".score").textContent = figure(scores[state.metric][order[place]]);
      if (before.nextElementSibling !== made) before.after(made);
      before = made;
    }
    above.firstElementChild.style.height = `${first * HEIGHT}px`;
    below.firstElementChild.style.height = `${(order.length - last) * HEIGHT}px`;
  };

  const apply = ({ top = true } = {}) => {
    const words = fields.q.value.toLowerCase().split(/\s+/).filter(Boolean);
    const agent = agents.indexOf(fields.agent.value);
    const condition = conditions.indexOf(fields.condition.value);
    const like = outcomes[fields.outcome.value];
    state.metric = Number(fields.metric.value) || 0;
    const asked = words.length === 0 ? null : new Set(texts.keys().filter((at) => words.every((word) => texts[at].includes(word))));
    order = [];
    for (let at = 0; at < count; at += 1) {
      if (agent >= 0 && trials.agent[at] !== agent) continue;
      if (condition >= 0 && trials.condition[at] !== condition) continue;
      if (asked && !asked.has(trials.sample[at])) continue;
      if (like && !like(at)) continue;
      order.push(at);
    }
    const key = keys[state.sort.replace(/^-/, "")];
    if (key) {
      const sign = state.sort.startsWith("-") ? -1 : 1;
      const values = new Map(order.map((at) => [at, key(at)]));
      // What is unknown goes last, whichever way.
      order.sort((a, b) => {
        const [left, right] = [values.get(a), values.get(b)];
        if (left === null || right === null) return (left === null) - (right === null) || a - b;
        return sign * (left < right ? -1 : left > right ? 1 : 0) || a - b;
      });
    }
    for (const head of frame.querySelectorAll("th[data-sort]")) {
      const sorted = state.sort.replace(/^-/, "") === head.dataset.sort;
      if (sorted) head.setAttribute("aria-sort", state.sort.startsWith("-") ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    }
    if (scored) frame.querySelector(".score-head button").textContent = metrics[state.metric].name;
    frame.querySelector("table").setAttribute("aria-rowcount", String(order.length + 1));
    if (top) frame.scrollTop = 0;
    const all = order.length === count;
    found.textContent = `${order.length.toLocaleString("en")}${all ? "" : ` of ${count.toLocaleString("en")}`} trial${count === 1 ? "" : "s"}`;
    draw();
  };

  for (const head of frame.querySelectorAll("th[data-sort]")) {
    const button = element("button", { type: "button", text: head.textContent });
    button.addEventListener("click", () => {
      const { sort } = head.dataset;
      // The largest first, except for names; then the other way round; then in the order of the dataset.
      const ways = ["sample", "agent", "condition", "repetition", "failure"].includes(sort) ? [sort, `-${sort}`, ""] : [`-${sort}`, sort, ""];
      state.sort = ways[(ways.indexOf(state.sort) + 1) % 3];
      write();
      apply();
    });
    head.replaceChildren(button);
  }
  const changed = () => { write(); apply(); };
  form.addEventListener("input", changed);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => setTimeout(() => { state.sort = ""; changed(); }));
  frame.addEventListener("scroll", () => requestAnimationFrame(draw), { passive: true });
  new ResizeObserver(draw).observe(frame);
  addEventListener("popstate", () => { read(); apply(); });

  frame.classList.add("virtual");
  document.getElementById("pages").hidden = true;
  const typed = fields.q.value;
  read();
  fields.q.value ||= typed;
  apply();
};

if (frame) {
  form.hidden = false;
  found.append(" … reading their scores");
  const response = await fetch(form.dataset.table);
  if (response.ok) begin(await response.json());
  else found.append(`, which failed: ${response.status}`);
}
