// The questions of a page: they open on their answers, are filtered, ordered and linked to. Without a library, and
// without network where the answers are in the page; a server gives those to one question at a time.
(() => {
  const AT_ONCE = 100;  // after the first few, which leave the rest of the page within sight
  const list = document.getElementById("list");
  if (!list) return;
  const parsed = (id) => JSON.parse(document.getElementById(id).textContent);
  const form = document.getElementById("filters");
  const search = document.getElementById("search");
  const show = document.getElementById("show");
  const order = document.getElementById("order");
  const comparison = document.getElementById("comparison");
  const metric = document.getElementById("metric");
  const heads = [...document.querySelectorAll("button[data-sort]")];
  const keys = [...form.querySelectorAll("select[data-key]")];
  const found = document.getElementById("found");
  const more = document.getElementById("more");

  // Rows in the order that keval gave them. Those after the first few become elements when they are shown.
  const first = [...list.children];
  const others = parsed("rows");
  const rows = parsed("index").map((row, place) => ({ ...row, place, item: first[place] ?? null, compared: 0, text: null }));
  const byId = new Map(rows.map((row) => [`sample-${row.id}`, row]));
  const detailsOf = (row) => row.item.querySelector("details");
  const byDetails = new WeakMap(rows.slice(0, first.length).map((row) => [detailsOf(row), row]));
  const { arms, metrics } = parsed("compared");
  const { slopes, told } = globalThis.keval;
  let shown = rows;
  let limit = first.length;

  const fragment = (html) => {
    const template = document.createElement("template");
    template.innerHTML = html;
    return template.content;
  };

  // What is kept as JSON is HTML that keval rendered, with all text of others escaped.
  const answers = (row) => {
    const kept = document.getElementById(`answers-${row.n}`);
    return kept ? JSON.parse(kept.textContent) : null;
  };

  const fetched = async (row) => {
    if (!list.dataset.answers) return null;
    const response = await fetch(`${list.dataset.answers}${encodeURIComponent(row.id)}`).catch(() => null);
    return response?.ok ? response.text() : null;
  };

  const chosen = () => (comparison ? Number(comparison.value) : 0);

  // The figures of a question by the metric and the comparison that are chosen; null where there is none.
  const figures = (row) => {
    const at = metric ? Number(metric.value) : Number(list.parentElement.dataset.chosen);
    const [arm, against] = arms[chosen()];
    const means = row.scores[at] ?? [];
    const [score, other] = [means[arm] ?? null, means[against] ?? null];
    return { score, spread: row.spreads[at] ?? null, effect: score === null || other === null ? null : score - other };
  };

  // The element of a row, which shows the comparison that is chosen.
  const element = (row) => {
    if (row.item === null) {
      row.item = fragment(others[row.place - first.length]).firstElementChild;
      byDetails.set(detailsOf(row), row);
    }
    const values = figures(row);
    for (const place of row.item.querySelectorAll("[data-figure]")) {
      place.textContent = told(values[place.dataset.figure], place.dataset.figure === "effect");
    }
    if (row.compared !== chosen()) {
      row.compared = chosen();
      for (const group of row.item.querySelectorAll(".heats, .changes")) {
        const cells = [...group.children].filter((cell) => !cell.classList.contains("lost"));
        cells.forEach((cell, place) => cell.toggleAttribute("hidden", place !== row.compared));
      }
    }
    return row.item;
  };

  const open = async (row) => {
    const place = row.item.querySelector(".answers");
    if (place.hasChildNodes()) return;
    place.append("…");
    const html = answers(row) ?? await fetched(row);
    if (html !== null) {
      place.replaceChildren(fragment(html));
    } else if (list.dataset.answers) {
      place.replaceChildren();  // which is tried again when the question is opened again
    } else {
      place.textContent = "These answers are left out of the page, as it would become too large; `keval show` has them.";
    }
  };

  // The text of a question and its answers, taken out of their HTML when something is first searched for.
  const text = (row) => {
    if (row.text === null) {
      const html = (row.item?.outerHTML ?? others[row.place - first.length]) + (answers(row) ?? "");
      row.text = fragment(html).textContent.toLowerCase();
    }
    return row.text;
  };

  const matches = (row, words, labels) => {
    const kind = show.value;
    if ((kind === "worse" || kind === "better") && !row[kind][chosen()]) return false;
    if ((kind === "failed" || kind === "unscored" || kind === "claims") && !row[kind]) return false;
    if (!labels.every(([key, value]) => (row.labels[key] ?? []).includes(value))) return false;
    return words.every((word) => text(row).includes(word));
  };

  // By the column that is sorted: questions without a figure come last, and those that are alike as in the dataset.
  const byColumn = (a, b) => {
    const head = heads.find((button) => button.parentElement.ariaSort);
    const way = head.parentElement.ariaSort === "descending" ? -1 : 1;
    if (head.dataset.sort === "id") return way * a.id.localeCompare(b.id, "en", { numeric: true }) || a.n - b.n;
    const [one, other] = [a, b].map((row) => figures(row)[head.dataset.sort]);
    if (one === null || other === null) return (one === null) - (other === null) || a.n - b.n;
    return way * (one - other) || a.n - b.n;
  };

  const sortBy = (button) => {
    const before = button.parentElement.ariaSort;
    const first = button.dataset.sort === "spread" ? "descending" : "ascending";
    unsort();
    button.parentElement.ariaSort = before === "ascending" ? "descending" : before === "descending" ? "ascending" : first;
    order.value = "column";
    apply();
  };

  const unsort = () => heads.forEach((button) => button.parentElement.removeAttribute("aria-sort"));

  const draw = () => {
    list.replaceChildren(...shown.slice(0, limit).map(element));
    more.hidden = shown.length <= limit;
  };

  // Filter and order the rows anew.
  const apply = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const labels = keys.filter((select) => select.selectedIndex > 0)
      .map((select) => [select.dataset.key, select.selectedOptions[0].dataset.value]);
    const at = chosen();
    const share = (row) => row.worst[at] ?? Infinity;
    const compare = {
      worst: (a, b) => b.failed - a.failed || share(a) - share(b) || a.n - b.n,
      dataset: (a, b) => a.n - b.n,
      column: byColumn,
    }[order.value];
    shown = rows.filter((row) => matches(row, words, labels)).sort(compare);
    limit = AT_ONCE;
    draw();
    const all = shown.length === rows.length;
    found.textContent = `${shown.length}${all ? "" : ` of ${rows.length}`} question${rows.length === 1 ? "" : "s"}`;
  };

  const extend = () => {
    limit += AT_ONCE;
    list.append(...shown.slice(limit - AT_ONCE, limit).map(element));
    more.hidden = shown.length <= limit;
  };

  // #sample-… opens that question, whether the link is percent-encoded or not.
  const follow = () => {
    const name = location.hash.slice(1);
    let plain = name;
    try {
      plain = decodeURIComponent(name);
    } catch {
      // A stray % is part of the name.
    }
    const row = byId.get(plain) ?? byId.get(name);
    if (!row) return;
    if (!shown.includes(row)) {
      form.reset();
      apply();
    }
    if (shown.indexOf(row) >= limit) {
      limit = shown.indexOf(row) + 1;
      draw();
    }
    const details = detailsOf(row);
    details.open = true;
    open(row);
    details.scrollIntoView();
    details.querySelector("summary").focus({ preventScroll: true });
  };

  // The questions of an effect as lines, in a row below that of the effect.
  const paired = (cell) => {
    const [arm, against] = cell.dataset.pair.split(" ").map(Number);
    const at = metrics.findIndex((each) => each.name === cell.dataset.metric);
    const pairs = rows.map((row) => [row.id, row.scores[at]?.[against] ?? null, row.scores[at]?.[arm] ?? null]);
    const answersOf = async (id) => {
      const row = byId.get(`sample-${id}`);
      const text = answers(row) ?? await fetched(row);
      return [[text, against], [text, arm]];
    };
    return slopes({
      ...metrics[at],
      pairs: pairs.filter(([, before, now]) => before !== null && now !== null),
      names: [cell.dataset.against, cell.dataset.arm],
      link: (id) => `#sample-${encodeURIComponent(id)}`,
      answers: answersOf,
    });
  };
  for (const cell of document.querySelectorAll("[data-pair]")) {
    if (!metrics.some((each) => each.name === cell.dataset.metric) || cell.textContent.trim() === "0") continue;
    const button = document.createElement("button");
    button.className = "pairs";
    button.ariaExpanded = "false";
    button.append(...cell.childNodes);
    cell.append(button);
    const below = document.createElement("tr");
    button.addEventListener("click", () => {
      const isOpen = button.ariaExpanded === "true";
      button.ariaExpanded = String(!isOpen);
      if (isOpen) return below.remove();
      if (!below.firstChild) below.insertCell().append(paired(cell));
      below.firstChild.colSpan = cell.parentElement.cells.length;
      cell.parentElement.after(below);
    });
  }

  let waiting = 0;
  search.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(apply, 150);
  });
  list.addEventListener("toggle", (event) => {
    const row = byDetails.get(event.target);
    if (!row || !event.target.open) return;
    open(row);
    history.replaceState(null, "", `#${event.target.id}`);
  }, true);
  form.addEventListener("submit", (event) => { event.preventDefault(); apply(); });
  form.addEventListener("reset", () => {
    unsort();
    setTimeout(apply);
  });
  order.addEventListener("change", unsort);
  heads.forEach((button) => button.addEventListener("click", () => sortBy(button)));
  for (const select of [show, order, comparison, metric, ...keys]) select?.addEventListener("change", apply);
  // Once somebody wants more, they come as the page is scrolled.
  more.firstElementChild.addEventListener("click", () => {
    extend();
    new IntersectionObserver((seen) => { if (seen.some((entry) => entry.isIntersecting)) extend(); }).observe(more);
  });
  draw();
  first.map((item) => byDetails.get(item.querySelector("details[open]"))).filter(Boolean).forEach(open);  // before now
  addEventListener("hashchange", follow);
  addEventListener("keydown", (event) => {
    if (event.key === "/" && !event.ctrlKey && !event.metaKey && !event.target.closest("input, select, textarea")) {
      event.preventDefault();
      search.focus();
    }
  });
  // The browser itself goes to the element of the link, and takes the focus away, before `load`.
  if (document.readyState === "complete") follow();
  else addEventListener("load", follow);
})();
