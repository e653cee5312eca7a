// The page of a play. The server renders it; here it is fetched again when something has changed, and what agents write
// is added piece by piece. Text of others is only ever put in as text.
import { follow } from "/static/viewer/play/events.js";
import { morph } from "/static/viewer/play/morph.js";
import { parse, show } from "/static/viewer/play/sheet.js";

const PAUSE = 80; // milliseconds between two fetches
const PATIENCE = 2000; // milliseconds without the server until that is said
const byId = (id) => document.getElementById(id);

// What agents write.

let pieces = [];

const add = ({ trial, text }) => {
  for (const place of document.querySelectorAll("[data-writing]")) {
    if (place.dataset.writing === trial) place.append(text);
  }
};

const text = (piece) => {
  pieces.push(piece);
  add(piece);
};

// The page as the server has it now.

let isFetching = false;
let isStale = false;

const fetched = async (url) => {
  const response = await fetch(url, { headers: { accept: "text/html" } });
  return response.ok ? parse(await response.text()) : null;
};

// This page, with what was searched for in the dataset.
const here = () => {
  const url = new URL(location.href);
  if (byId("find")?.value) url.searchParams.set("search", byId("find").value);
  return url;
};

const shown = (page) => {
  for (const id of ["session", "main"]) {
    const now = page.getElementById(id);
    if (now) morph(byId(id), now);
  }
  document.title = `${byId("stop-button").disabled ? "" : "… "}${page.title}`;
  const from = Number(byId("play").dataset.from);
  pieces = pieces.filter((piece) => piece.number >= from);
  pieces.forEach(add);
};

const changed = async () => {
  isStale = true;
  if (isFetching) return;
  isFetching = true;
  while (isStale) {
    isStale = false;
    try {
      const page = await fetched(here());
      if (page?.getElementById("play")) shown(page);
      await Promise.all([...document.querySelectorAll("details[data-load][open]")].map(load));
    } catch (error) {
      if (!(error instanceof TypeError)) throw error; // the server is not there; the events tell when it is again
    }
    await new Promise((resolve) => setTimeout(resolve, PAUSE));
  }
  isFetching = false;
};

const load = async (details) => {
  const page = await fetched(details.dataset.load);
  const question = page?.querySelector(".question");
  if (!question) return;
  const known = details.querySelector(".question");
  if (known) {
    morph(known, question);
    return;
  }
  details.querySelector("summary ~ *")?.remove();
  details.append(question);
};

document.addEventListener(
  "toggle",
  (event) => {
    if (event.target.matches("details[data-load]") && event.target.open) load(event.target);
  },
  true,
);

// What a person does.

const problem = (form, told) => {
  const place = form.querySelector("[data-problem]") ?? byId("problem");
  place.textContent = told;
};

const send = async (form, submitter) => {
  const data = new URLSearchParams(new FormData(form, submitter));
  const isSheet = form.dataset.sheet !== undefined;
  problem(form, "");
  let response;
  try {
    response = await fetch(form.action, {
      method: "POST",
      body: data,
      headers: { accept: isSheet ? "text/html" : "text/plain" },
    });
  } catch {
    problem(form, "keval play does not answer; it may have ended");
    return false;
  }
  const told = await response.text();
  if (!response.ok) problem(form, isSheet ? parse(told).querySelector("#main .foreign").textContent : told.trim());
  else if (isSheet) show(told);
  return response.ok;
};

const ask = async (form, submitter) => {
  const question = byId("text");
  if (question.value.trim() === "" || byId("send").disabled) return;
  if (await send(form, submitter)) {
    form.reset();
    byId("golden").open = false;
    fit(question);
  }
};

addEventListener("submit", async (event) => {
  const form = event.target;
  if (form.method === "dialog") return;
  if (form.id === "search" || form.id === "against") {
    event.preventDefault();
    return;
  }
  event.preventDefault();
  const buttons = [...form.querySelectorAll("button:enabled")];
  if (form.classList.contains("editor")) buttons.forEach((button) => (button.disabled = true));
  if (form.id === "ask") await ask(form, event.submitter);
  else if (await send(form, event.submitter)) {
    if (form.id === "samples") byId("chooser").open = false;
    if (form.classList.contains("editor")) form.reset();
    if (form.id === "new") byId("text").focus();
  }
  buttons.forEach((button) => (button.disabled = false));
  changed();
});

const search = async () => {
  const words = new URLSearchParams({ search: byId("find").value });
  const page = await fetched(`/play/samples?${words}`);
  if (page) morph(byId("samples"), page.getElementById("samples"));
};

const fit = (area) => {
  area.rows = Math.min(12, Math.max(2, area.value.split("\n").length));
};

addEventListener("input", (event) => {
  if (event.target.id === "find") search();
  if (event.target.id === "text") fit(event.target);
});

addEventListener("change", (event) => {
  if (event.target.name !== "against") return;
  const place = new URL(location.href);
  place.searchParams.set("against", event.target.value);
  history.replaceState(null, "", place);
  changed();
});

addEventListener("click", (event) => {
  const button = event.target.closest("[data-take]");
  if (button) button.form.elements.answer.value = button.dataset.take;
});

// Keys.

const reach = (details, field) => {
  details.open = true;
  field.focus();
  details.scrollIntoView({ block: "nearest" });
};

const keys = {
  a: () => byId("text").focus(),
  n: () => byId("new-button").disabled || byId("new-button").click(),
  e: () => reach(byId("setup"), byId("setup").querySelector("summary")),
  "/": () => byId("chooser") && reach(byId("chooser"), byId("find")),
};

addEventListener(
  "keydown",
  (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (document.querySelector("dialog[open]")) return;
    const { target, key } = event;
    if (key === "Escape" && !byId("stop-button").disabled) {
      event.preventDefault();
      byId("stop-button").click();
    } else if (key === "Enter" && target.id === "text" && !event.shiftKey) {
      event.preventDefault();
      byId("ask").requestSubmit(byId("send"));
    } else if (keys[key] && !target.closest("input, select, textarea")) {
      event.preventDefault();
      keys[key]();
    }
  },
  true,
);

// Seconds that pass while columns answer.

const since = new WeakMap();

setInterval(() => {
  const now = performance.now();
  for (const place of document.querySelectorAll(".ticking")) {
    const told = place.dataset.elapsed;
    if (since.get(place)?.told !== told) since.set(place, { told, began: now - Number(told) * 1000 });
    place.textContent = `${((now - since.get(place).began) / 1000).toFixed(1)} s`;
  }
}, 100);

let silence = 0;
follow(Number(byId("play").dataset.from), {
  text,
  changed,
  lost: (is) => {
    if (is) {
      silence ||= setTimeout(() => (byId("ended").hidden = false), PATIENCE);
      return;
    }
    clearTimeout(silence);
    silence = 0;
    byId("ended").hidden = true;
  },
});
