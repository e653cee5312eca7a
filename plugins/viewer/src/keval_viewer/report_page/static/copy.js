// Buttons that copy: a text of their own, what a URL answers, or the text that they stand below.
(() => {
  const told = document.createElement("p");
  told.className = "hidden";
  told.setAttribute("role", "status");
  document.body.append(told);
  document.documentElement.classList.add("scripted");

  const source = (button) => button.closest("[data-copied]").querySelector(":scope > .text, :scope > .as-written > .text, :scope > pre");

  const text = async (button) => {
    const { copy, copyUrl } = button.dataset;
    if (copy !== undefined) return copy;
    if (copyUrl !== undefined) return (await fetch(copyUrl)).text();
    const shown = source(button).cloneNode(true);
    for (const less of shown.querySelectorAll("del")) less.remove();  // words of another answer
    return shown.textContent;
  };

  // A page that was opened from a file may have no clipboard; a selection can be copied there.
  const bySelection = (button, wanted) => {
    const area = document.createElement("textarea");
    area.value = wanted;
    area.className = "hidden";
    button.after(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    button.focus();
    return done;
  };

  const byClipboard = (wanted) => navigator.clipboard.writeText(wanted).then(() => true, () => false);

  const show = (button, outcome) => {
    const label = button.firstElementChild;
    label.dataset.label ??= label.textContent;
    label.textContent = told.textContent = outcome;
    setTimeout(() => {
      label.textContent = label.dataset.label;
      told.textContent = "";
    }, 2000);
  };

  addEventListener("click", async (event) => {
    const button = event.target.closest("button.copy");
    if (!button) return;
    const wanted = await text(button).catch(() => null);
    if (wanted === null) show(button, "could not be fetched");
    else if ((navigator.clipboard && await byClipboard(wanted)) || bySelection(button, wanted)) show(button, "copied");
    else show(button, "the browser does not allow it");
  });
})();
