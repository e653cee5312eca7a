// A choice takes effect at once, and `[` and `]` lead to the previous and the next question.
const form = document.querySelector("form.filters");
form?.addEventListener("change", () => form.requestSubmit());

const follow = { "]": "next", "[": "prev" };
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea")) return;
  const rel = follow[event.key];
  if (rel === undefined || document.querySelector("dialog[open]")) return;
  event.preventDefault();
  document.querySelector(`.pager a[rel=${rel}]`)?.click();
});
