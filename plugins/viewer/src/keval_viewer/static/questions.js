// Deciding by keyboard: y accepts, n rejects, s skips, e goes to the question, Escape leaves a field.
const form = document.getElementById("question");
const dialog = document.getElementById("keys");

const isTyping = (target) => target.closest("textarea, input, select") !== null;

const decide = (decision) => form?.querySelector(`button[value=${decision}]`).click();

const actions = {
  y: () => decide("accept"),
  n: () => decide("reject"),
  s: () => document.querySelector("[data-skip]")?.click(),
  e: () => form?.querySelector("textarea").focus(),
};

addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || dialog.open) return;
  if (event.key === "Escape" && isTyping(event.target)) event.target.blur();
  if (isTyping(event.target) || actions[event.key] === undefined) return;
  event.preventDefault();
  actions[event.key]();
});

// A second y would decide on the next question, which nobody has seen.
form?.addEventListener("submit", (event) => {
  if (form.dataset.sent) event.preventDefault();
  form.dataset.sent = "yes";
});
addEventListener("pageshow", () => delete form?.dataset.sent);
