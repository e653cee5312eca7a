// Pages that need not be left for: they open in a dialog.
const sheet = document.getElementById("sheet");
const body = document.getElementById("sheet-body");

export const parse = (html) => new DOMParser().parseFromString(html, "text/html");

// HTML that keval rendered, with all text of others escaped.
export const show = (html) => {
  const main = parse(html).getElementById("main");
  body.replaceChildren(...main.childNodes);
  sheet.showModal();
};

addEventListener("click", async (event) => {
  const link = event.target.closest("a[data-sheet]");
  if (!link || sheet === null || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  show(await (await fetch(link.href)).text());
});
