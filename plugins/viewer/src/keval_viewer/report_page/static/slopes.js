"use strict";
// The questions of an effect as lines from one arm to the other. A line, or its row in the table below, leads to both
// answers side by side. Whoever draws one says where answers come from: as HTML that keval rendered.
(() => {
  const [WIDE, TALL, LEFT, TOP] = [520, 240, 52, 12];
  const MOST = 400;  // questions up to which each has a line of its own; of more, those that are alike share one
  const STEPS = 24;

  const told = (value, sign) => {
    if (value === null) return "–";
    const text = Math.abs(value) >= 100 ? Math.round(value).toLocaleString("en") : value.toFixed(2).replace(/^-(0\.00)$/, "$1");
    return sign && !text.startsWith("-") ? `+${text}` : text;
  };

  const made = (place, name, attributes, ...children) => {
    const element = place(name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...children);
    return element;
  };
  const html = (...given) => made((name) => document.createElement(name), ...given);
  const svg = (...given) => made((name) => document.createElementNS("http://www.w3.org/2000/svg", name), ...given);
  const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;

  // `pairs` are questions with their scores in both arms; `names` are those of the arms, that it is held against first.
  const slopes = ({ pairs, names, low, high, lower, link, answers }) => {
    const ceiling = high ?? pairs.reduce((most, [, before, now]) => Math.max(most, before, now), low + 1e-6);
    const y = (value) => TOP + TALL * (1 - (value - low) / (ceiling - low));
    const verdict = (change) => (change ? ((change > 0) === !lower ? "better" : "worse") : "same");
    const sorted = [...pairs].sort((a, b) => (lower ? -1 : 1) * (a[2] - a[1] - b[2] + b[1]) || a[1] - b[1]);
    const means = [1, 2].map((end) => mean(pairs.map((pair) => pair[end])));
    const at = (values) => `M${LEFT} ${values[0].toFixed(1)}L${WIDE - LEFT} ${values[1].toFixed(1)}`;
    const place = html("div", { class: "pair-answers", tabindex: -1 });
    const pointed = html("p", { class: "pointed", "aria-hidden": "true" });

    const show = async (id) => {
      place.replaceChildren("…");
      const found = await answers(id);
      place.replaceChildren();
      if (found.some(([text]) => text === null)) {
        place.append("The answers are not in this page; `keval show` has them.");
      } else {
        const parts = found.map(([text, arm]) => {
          const template = html("template", {});
          template.innerHTML = text;
          return [template.content, template.content.querySelector(`[data-arm="${arm}"]`)];
        });
        const both = html("div", { class: "side-by-side", tabindex: 0, role: "group", "aria-label": `both answers to ${id}` });
        both.append(...parts.map(([, article]) => article).filter(Boolean));
        const hint = html("p", { class: "wide-hint dim", "aria-hidden": "true" }, "2 side by side: scroll →");
        place.append(html("h3", {}, html("bdi", {}, id)), parts[0][0].querySelector(".about"), hint, both);
      }
      place.focus();
    };
    const leading = (make, id, attributes, ...children) => {
      const element = make("a", { href: link(id), ...attributes }, ...children);
      element.addEventListener("click", (event) => {
        if (event.ctrlKey || event.metaKey || event.shiftKey) return;
        event.preventDefault();
        show(id);
      });
      return element;
    };

    const groups = new Map();
    const step = pairs.length > MOST ? (ceiling - low) / STEPS : 0;
    for (const pair of sorted) {
      const key = pair.slice(1, 3).map((value) => (step ? Math.round((value - low) / step) * step + low : value)).join();
      groups.set(key, [...(groups.get(key) ?? []), pair]);
    }
    const most = Math.max(...[...groups.values()].map((group) => group.length));
    // Lines that would hide each other are a little apart.
    const apart = (rank, count) => (rank - (count - 1) / 2) * Math.min(2.5, 14 / count);
    const lines = [...groups].flatMap(([key, group]) => {
      const ends = key.split(",").map(Number);
      const kind = verdict(mean(group.map(([, before, now]) => now - before)));
      if (step) {
        const name = svg("title", {}, `${group.length} questions: ${ends.map((end) => told(end)).join(" → ")}`);
        const wide = (1 + 7 * Math.sqrt(group.length / most)).toFixed(1);
        return [svg("path", { class: `line ${kind}`, d: at(ends.map(y)), "stroke-width": wide }, name)];
      }
      return group.map(([id, before, now], rank) => {
        const d = at(ends.map((end) => y(end) + apart(rank, group.length)));
        const label = `${id}: ${told(before)} → ${told(now)} (${told(now - before, true)})`;
        const parts = [svg("path", { class: "near", d }), svg("path", { class: `line ${kind}`, d })];
        return leading(svg, id, { "aria-label": label, tabindex: -1 }, ...parts);
      });
    });
    lines.find((line) => line.matches("a"))?.setAttribute("tabindex", 0);

    const drawn = svg("svg", { viewBox: `0 0 ${WIDE} ${TALL + 2 * TOP}`, role: "group", "aria-label": `each question from ${names.join(" to ")}` });
    for (const value of [low, (low + ceiling) / 2, ceiling]) {
      drawn.append(svg("line", { class: "tick", x1: LEFT, x2: WIDE - LEFT, y1: y(value), y2: y(value) }));
      for (const [x, anchor] of [[LEFT - 8, "end"], [WIDE - LEFT + 8, "start"]]) {
        drawn.append(svg("text", { x, y: y(value) + 4, "text-anchor": anchor }, told(value).replace(/\.00$/, "")));
      }
    }
    drawn.append(...lines, svg("path", { class: "mean", d: at(means.map(y)) }));
    for (const kind of ["pointerover", "focusin"]) {
      drawn.addEventListener(kind, (event) => { pointed.textContent = event.target.closest("a")?.getAttribute("aria-label") ?? ""; });
    }
    drawn.addEventListener("keydown", (event) => {
      const next = lines[lines.indexOf(event.target) + ({ ArrowDown: 1, ArrowUp: -1 })[event.key]];
      if (!next) return;
      event.preventDefault();
      event.target.setAttribute("tabindex", -1);
      next.setAttribute("tabindex", 0);
      next.focus();
    });

    const counts = ["better", "worse", "same"].map((kind) => {
      const count = pairs.filter(([, before, now]) => verdict(now - before) === kind).length;
      return html("span", { class: kind }, `${count} ${kind === "same" ? "the same" : kind}`);
    });
    const ends = html("p", { class: "ends" }, ...names.map((name, end) => html("span", {}, html("bdi", {}, name), " ", html("b", {}, told(means[end])))));
    const advice = step ? "A line is as many questions as it is thick; the bold one is the mean." : "A line is a question, the bold one the mean. Choose one to read both answers; ↑ ↓ go from line to line.";
    const caption = html("figcaption", {}, html("p", {}, ...counts.flatMap((each) => [each, " "])), pointed, html("p", { class: "dim" }, advice));
    const table = html("details", {}, html("summary", {}, "as a table"));
    table.addEventListener("toggle", () => {
      const heads = ["question", ...names, "difference"].map((name, column) => html("th", column ? { scope: "col", class: "num" } : { scope: "col" }, name));
      const rows = sorted.map(([id, before, now, asked = ""]) => {
        const figures = [told(before), told(now), told(now - before, true)].map((text) => html("td", { class: "num" }, text));
        return html("tr", {}, html("th", { scope: "row" }, leading(html, id, {}, html("bdi", {}, id)), " ", html("span", { class: "dim foreign" }, asked)), ...figures);
      });
      const every = html("table", {}, html("thead", {}, html("tr", {}, ...heads)), html("tbody", {}, ...rows));
      table.append(html("div", { class: "scrolled", tabindex: 0, role: "group", "aria-label": "each question" }, every));
    }, { once: true });
    return html("div", { class: "paired" }, html("figure", { class: "slopes" }, ends, drawn, caption), table, place);
  };

  globalThis.keval = { slopes, told };
})();
