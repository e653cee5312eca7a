// The table of runs is filtered and sorted by the server as one types, and renewed when runs come, go on and end.
import { stream } from "./stream.js";

const form = document.getElementById("filters");
const table = document.getElementById("table");
const compare = document.getElementById("compare");
const picks = document.getElementById("picks");
const picked = document.getElementById("picked");
const button = document.getElementById("compare-button");
const ticked = new Set();
let asked = 0;

const boxes = () => [...table.querySelectorAll("input[type=checkbox]")];

const tell = () => {
  picks.hidden = ticked.size === 0;
  button.disabled = ticked.size < 2;
  picked.textContent = ticked.size === 1 ? "1 run; tick another one to compare" : `${ticked.size} runs`;
};

// Where the table is, as a URL: what is typed, and how it is sorted.
const query = () => {
  const parameters = new URLSearchParams([...new FormData(form)].filter(([, value]) => value !== ""));
  const sort = new URLSearchParams(location.search).get("sort");
  if (sort) parameters.set("sort", sort);
  return parameters.toString();
};

// Show the table as it is now. What has the focus keeps it, and what is ticked stays so, also while it is not shown.
const renew = async (parameters) => {
  asked += 1;
  const mine = asked;
  const response = await fetch(`/table?${parameters}`).catch(() => null);
  if (!response?.ok || mine !== asked) return;
  const html = await response.text();
  if (mine !== asked) return;
  const focused = document.activeElement?.closest("#table") ? document.activeElement : null;
  const key = focused && (focused.getAttribute("href") ?? focused.value);
  // Rendered by keval, with all text of others escaped.
  table.replaceChildren(...new DOMParser().parseFromString(html, "text/html").body.childNodes);
  for (const box of boxes()) box.checked = ticked.has(box.value);
  if (key === null) return;
  const again = [...table.querySelectorAll("a, input")].find((each) => (each.getAttribute("href") ?? each.value) === key);
  again?.focus({ preventScroll: true });
};

const apply = (parameters = query()) => {
  history.replaceState(null, "", parameters ? `/?${parameters}` : "/");
  return renew(parameters);
};

form.addEventListener("input", () => apply());
form.addEventListener("submit", (event) => {
  event.preventDefault();
  apply();
});

table.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-sort]");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  apply(new URL(link.href).search.slice(1));
});

table.addEventListener("change", (event) => {
  if (!event.target.matches("input[type=checkbox]")) return;
  if (event.target.checked) ticked.add(event.target.value);
  else ticked.delete(event.target.value);
  tell();
});

document.getElementById("none").addEventListener("click", () => {
  ticked.clear();
  for (const box of boxes()) box.checked = false;
  tell();
});

compare.addEventListener("submit", (event) => {
  event.preventDefault();
  if (ticked.size >= 2) location.assign(`/compare?${new URLSearchParams([...ticked].map((run) => ["run", run]))}`);
});

addEventListener("keydown", (event) => {
  if (event.key !== "x" || event.ctrlKey || event.metaKey || event.target.closest("input, select, textarea")) return;
  document.activeElement?.closest("tr")?.querySelector("input[type=checkbox]")?.click();
});

// After a pause, the table is renewed also if the server knows of no change since.
let connected = false;
stream("/events", { changed: () => renew(query()) }, (open) => {
  if (open && connected) renew(query());
  connected ||= open;
});
// A browser keeps ticks when it goes back to a page.
for (const box of boxes()) if (box.checked) ticked.add(box.value);
tell();
