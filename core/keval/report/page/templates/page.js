"use strict";
// The questions of a page: they open on their answers, are filtered, ordered and linked to. Without network or library.
(() => {
  const list = document.getElementById("list");
  const data = document.getElementById("index");
  if (!list || !data) return;
  const index = JSON.parse(data.textContent);
  const rows = [...list.children].map((item, place) => ({ item, ...index[place], texts: null }));
  const byDetails = new Map(rows.map((row) => [row.item.firstElementChild, row]));
  const form = document.getElementById("filters");
  const search = document.getElementById("search");
  const show = document.getElementById("show");
  const order = document.getElementById("order");
  const comparison = document.getElementById("comparison");
  const keys = [...form.querySelectorAll("select[data-key]")];
  const found = document.getElementById("found");

  // The answers are kept as JSON of escaped HTML, which keval rendered, and become elements when a question opens.
  const answers = (row) => {
    const kept = document.getElementById(`answers-${row.n}`);
    return kept ? JSON.parse(kept.textContent) : null;
  };

  const open = (details) => {
    const row = byDetails.get(details);
    const place = details.querySelector(".answers");
    if (!row || place.hasChildNodes()) return;
    const html = answers(row);
    if (html === null) {
      place.textContent = "These answers are left out of the page, as it would become too large; `keval show` has them.";
    } else {
      place.innerHTML = html;
    }
  };

  // The texts of all answers are taken out of their HTML when something is searched for the first time.
  const texts = (row) => {
    if (row.texts === null) {
      const holder = new DOMParser().parseFromString(answers(row) ?? "", "text/html");
      row.texts = `${row.item.querySelector(".what").textContent}\n${holder.body.textContent}`.toLowerCase();
    }
    return row.texts;
  };

  const chosen = () => (comparison ? Number(comparison.value) : 0);

  const isShown = (row, words, labels) => {
    const kind = show.value;
    if ((kind === "worse" || kind === "better") && !row[kind][chosen()]) return false;
    if ((kind === "failed" || kind === "unscored" || kind === "claims") && !row[kind]) return false;
    if (!labels.every(([key, value]) => (row.labels[key] ?? []).includes(value))) return false;
    return words.every((word) => texts(row).includes(word));
  };

  const filter = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const labels = keys.filter((select) => select.selectedIndex > 0)
      .map((select) => [select.dataset.key, select.selectedOptions[0].dataset.value]);
    let count = 0;
    for (const row of rows) {
      const shown = isShown(row, words, labels);
      if (row.item.hidden === shown) row.item.hidden = !shown;
      count += shown;
    }
    const all = count === rows.length;
    found.textContent = `${count}${all ? "" : ` of ${rows.length}`} question${rows.length === 1 ? "" : "s"}`;
  };

  const sort = () => {
    const at = chosen();
    const share = (row) => row.worst[at] ?? Infinity;
    const compare = order.value === "worst"
      ? (a, b) => b.failed - a.failed || share(a) - share(b) || a.n - b.n
      : (a, b) => a.n - b.n;
    list.append(...rows.toSorted(compare).map((row) => row.item));
  };

  const choose = () => {
    const at = chosen();
    for (const { item } of rows) {
      for (const group of item.querySelectorAll("summary .heats, summary .changes")) {
        const cells = [...group.children].filter((cell) => !cell.classList.contains("lost"));
        cells.forEach((cell, place) => cell.toggleAttribute("hidden", place !== at));
      }
    }
    sort();
    filter();
  };

  // #sample-… opens that question; what is in a link may be percent-encoded or not.
  const follow = () => {
    const name = location.hash.slice(1);
    if (!name.startsWith("sample-")) return;
    let plain = name;
    try {
      plain = `sample-${encodeURIComponent(decodeURIComponent(name.slice(7)))}`;
    } catch {
      // A stray % is part of the name.
    }
    const details = document.getElementById(name) ?? document.getElementById(plain);
    if (!byDetails.has(details)) return;
    if (byDetails.get(details).item.hidden) {
      form.reset();
      choose();
    }
    details.open = true;
    open(details);
    details.scrollIntoView();
    details.querySelector("summary").focus({ preventScroll: true });
  };

  let waiting = 0;
  const later = () => {
    clearTimeout(waiting);
    waiting = setTimeout(filter, 150);
  };

  list.addEventListener("toggle", (event) => {
    const details = event.target;
    if (!byDetails.has(details) || !details.open) return;
    open(details);
    history.replaceState(null, "", `#${details.id}`);
  }, true);
  search.addEventListener("input", later);
  form.addEventListener("submit", (event) => { event.preventDefault(); filter(); });
  form.addEventListener("reset", () => setTimeout(choose));
  show.addEventListener("change", filter);
  keys.forEach((select) => select.addEventListener("change", filter));
  order.addEventListener("change", sort);
  comparison?.addEventListener("change", choose);
  addEventListener("hashchange", follow);
  addEventListener("keydown", (event) => {
    if (event.key === "/" && !event.ctrlKey && !event.metaKey && !event.target.closest("input, select, textarea")) {
      event.preventDefault();
      search.focus();
    }
  });
  follow();
})();
