// Pages that need not be left for: they open in a dialog; and buttons that copy.
const sheet = document.getElementById("sheet");
const body = document.getElementById("sheet-body");

export const parse = (html) => new DOMParser().parseFromString(html, "text/html");

// HTML that keval rendered, with all text of others escaped.
export const show = (html) => {
  const main = parse(html).getElementById("main");
  body.replaceChildren(...main.childNodes);
  ready(body);
  sheet.showModal();
};

const copy = async (button) => {
  const text = document.getElementById(button.dataset.copy).textContent;
  const told = document.getElementById("copied");
  try {
    await navigator.clipboard.writeText(text);
    told.textContent = "copied";
  } catch {
    getSelection().selectAllChildren(document.getElementById(button.dataset.copy));
    told.textContent = "the browser does not let a page copy; it is selected";
  }
};

const ready = (root) => {
  for (const button of root.querySelectorAll("[data-copy]")) button.hidden = false;
};

addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (button) await copy(button);
  const link = event.target.closest("a[data-sheet]");
  if (!link || sheet === null || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  show(await (await fetch(link.href)).text());
});

ready(document);
