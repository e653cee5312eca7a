// The page of a running run: its parts are replaced as they change, and all of it when the run has ended.
import { stream } from "./stream.js";

const live = document.getElementById("live");
const lost = document.getElementById("connection");

const place = (name) => [...live.children].find((each) => each.dataset.part === name);

// What is open stays open, and what is scrolled stays so. The HTML is keval's, with all text of others escaped.
const replace = ({ name, html }) => {
  const old = place(name);
  if (!old) return;
  const opened = new Set([...old.querySelectorAll("details[open] > summary")].map((each) => each.textContent));
  const scrolled = [...old.querySelectorAll(".scrolled")].map((each) => each.scrollLeft);
  const focused = old.contains(document.activeElement) ? document.activeElement.textContent : null;
  old.replaceChildren(...new DOMParser().parseFromString(html, "text/html").body.childNodes);
  for (const summary of old.querySelectorAll("details > summary")) {
    summary.parentElement.open = opened.has(summary.textContent);
    if (summary.textContent === focused) summary.focus({ preventScroll: true });
  }
  old.querySelectorAll(".scrolled").forEach((each, index) => { each.scrollLeft = scrolled[index] ?? 0; });
  tick();
};

// Seconds go on between two events.
const tick = () => {
  for (const each of live.querySelectorAll("[data-since]")) {
    each.textContent = `${Math.max(0, Math.round(Date.now() / 1000 - Number(each.dataset.since)))} s`;
  }
};

const again = (_, source) => {
  source.close();
  location.reload();
};

stream(live.dataset.events, { part: replace, ended: again, begun: again }, (connected) => { lost.hidden = connected; });
setInterval(tick, 1000);
