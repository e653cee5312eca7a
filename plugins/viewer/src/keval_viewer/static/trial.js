// Steps through a trial: the same step is highlighted in the conversation and on the timeline.
const HERE = "current";
const steps = () => [...document.querySelectorAll(".conversation > [data-step]")].filter((item) => item.checkVisibility());

const partsOf = (name) => document.querySelectorAll(`[data-step="${CSS.escape(name)}"]`);

const show = (name, { scroll = true } = {}) => {
  for (const part of document.querySelectorAll(`[data-step].${HERE}`)) {
    part.classList.remove(HERE);
    part.removeAttribute("aria-current");
  }
  for (const part of partsOf(name)) {
    part.classList.add(HERE);
    part.setAttribute("aria-current", "step");
    if (scroll) part.scrollIntoView({ block: "nearest" });
  }
};

const current = () => document.querySelector(`.conversation > [data-step].${HERE}`);

const go = (by) => {
  const all = steps();
  if (all.length === 0) return;
  const at = all.indexOf(current());
  const next = at === -1 ? (by > 0 ? 0 : all.length - 1) : Math.min(Math.max(at + by, 0), all.length - 1);
  all[next].focus({ preventScroll: true });
  show(all[next].dataset.step);
  history.replaceState(null, "", `#${all[next].id}`);
};

const follow = (rel) => document.querySelector(`.pager a[rel=${rel}]`)?.click();

const actions = {
  j: () => go(1),
  k: () => go(-1),
  ArrowRight: () => go(1),
  ArrowLeft: () => go(-1),
  "]": () => follow("next"),
  "[": () => follow("prev"),
};

const isTaken = (target) => target.closest("input, select, textarea, [contenteditable], dialog[open]") !== null;

// Before the keys of all pages, which j and k would move from row to row.
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || isTaken(event.target)) return;
  if (document.querySelector("dialog[open]")) return;
  const inTrack = event.target.closest(".track") !== null;
  const key = inTrack ? { ArrowDown: "j", ArrowUp: "k" }[event.key] ?? event.key : event.key;
  const action = actions[key];
  if (action === undefined) return;
  event.preventDefault();
  action();
});

// A click on a row of the timeline, or on a step of the conversation, makes it the current one.
document.addEventListener("click", (event) => {
  const step = event.target.closest("[data-step]");
  if (step === null || event.target.closest("summary, a:not([href^='#'])")) return;
  show(step.dataset.step, { scroll: step.closest(".track") !== null });
});

const byHash = () => {
  const named = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (named?.dataset.step === undefined) return;
  for (let outer = named.closest("details"); outer; outer = outer.parentElement.closest("details")) outer.open = true;
  show(named.dataset.step);
};
addEventListener("hashchange", byHash);
byHash();
