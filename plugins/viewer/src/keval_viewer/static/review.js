// Reviewing by keyboard: a digit gives the level of the marked rubric, m goes to the note, n saves, s skips.
const form = document.getElementById("verdicts");
const groups = [...form.querySelectorAll("[data-rubric]")];
const dialog = document.getElementById("keys");

const isSaid = (group) => group.querySelector("input:checked")?.value !== "" && group.querySelector("input:checked") !== null;

const isTyping = (target) => target.closest("textarea, select, input:not([type=radio], [type=checkbox])") !== null;

const mark = (group) => {
  for (const other of groups) other.classList.toggle("marked", other === group);
};

const marked = () => groups.find((group) => group.classList.contains("marked"));

const nextUnsaid = () => groups.find((group) => !isSaid(group));

const level = (digit) => {
  const group = marked();
  const input = [...(group?.querySelectorAll("input") ?? [])].find((each) => each.value === digit);
  if (input === undefined) return false;
  input.checked = true;
  const next = nextUnsaid() ?? group;
  mark(next);
  next.scrollIntoView({ block: "nearest" });
  return true;
};

// Of the answer that is being reviewed: that of the focus, or of the marked rubric.
const note = () => {
  (document.activeElement.closest("article") ?? marked()?.closest("article") ?? form).querySelector("textarea").focus();
  return true;
};

const back = () => {
  document.querySelector("[data-previous]")?.click();
  return true;
};

const send = () => {
  form.requestSubmit();
  return true;
};

const skip = () => {
  form.requestSubmit(form.querySelector("button[name=skip]"));
  return true;
};

const actions = { m: note, n: send, s: skip, p: back };

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || dialog.open) return;
  if (event.key === "Escape" && isTyping(event.target)) event.target.blur();
  if (isTyping(event.target)) return;
  const action = /^[0-9]$/.test(event.key) ? () => level(event.key) : actions[event.key];
  if (action?.()) event.preventDefault();
});

for (const group of groups) {
  group.addEventListener("focusin", () => mark(group));
  group.addEventListener("click", () => mark(group));
}
form.classList.add("brief");
mark(nextUnsaid() ?? groups[0]);

// A second Enter or n would send the same form twice.
form.addEventListener("submit", (event) => {
  if (form.dataset.sent) event.preventDefault();
  form.dataset.sent = "yes";
});
addEventListener("pageshow", () => delete form.dataset.sent);
