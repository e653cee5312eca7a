// The parts of a run's page that take longer are fetched: the questions at once, and each of the others when it is
// opened. They are HTML that keval rendered, with all text of others escaped.
import { stream } from "./stream.js";

const fetched = async (url) => {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url}: ${response.status}`);
  return new DOMParser().parseFromString(await response.text(), "text/html").body;
};

const load = async (place) => {
  try {
    const part = await fetched(place.dataset.fetch);
    for (const folded of part.querySelectorAll(".folded")) folded.open = true;
    place.replaceWith(...part.childNodes);
  } catch {
    place.querySelector("p").append(" could not be fetched; follow the link to see why");
  }
};

for (const place of document.querySelectorAll(".part:has(> section > .folded)")) {
  const folded = place.querySelector(".folded");
  folded.addEventListener("toggle", () => load(place), { once: true });
  if (folded.open) load(place);  // by a link to it
}

// The script of the report's page, which filters and opens questions, begins when they are there.
const questions = document.querySelector("[data-answers]");
if (questions) {
  const { answers } = questions.dataset;
  await load(questions);
  const list = document.getElementById("list");
  if (list) {
    list.dataset.answers = answers;
    await import("/static/slopes.js");
    await import("/static/page.js");
  }
}

const unfinished = document.getElementById("unfinished");
if (unfinished) stream(unfinished.dataset.events, { begun: () => location.reload(), ended: () => location.reload() });
