// The keys of all pages: `/` goes to the search, `j` and `k` from one [data-row] to the next, `?` shows the keys.
const dialog = document.getElementById("keys");

const isTyping = (target) => target.closest("input, select, textarea, [contenteditable]") !== null;

const step = (by) => {
  const rows = [...document.querySelectorAll("[data-row]")].filter((row) => row.checkVisibility());
  if (rows.length === 0) return;
  const at = rows.indexOf(document.activeElement);
  const next = at === -1 ? (by > 0 ? 0 : rows.length - 1) : Math.min(Math.max(at + by, 0), rows.length - 1);
  rows[next].focus();
  rows[next].scrollIntoView({ block: "nearest" });
};

const search = () => {
  const field = document.querySelector("input[type=search]");
  field?.focus();
  field?.select();
};

const toggle = () => (dialog.open ? dialog.close() : dialog.showModal());

const actions = { "/": search, j: () => step(1), k: () => step(-1), "?": toggle };

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || isTyping(event.target)) return;
  if (dialog.open && event.key !== "?") return;
  const action = actions[event.key];
  if (action === undefined) return;
  event.preventDefault();
  action();
});
