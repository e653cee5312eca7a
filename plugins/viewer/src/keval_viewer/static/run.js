// The parts of a run's page that take longer are fetched one after the other, in their order. They are HTML that keval
// rendered, with all text of others escaped.
import { stream } from "./stream.js";

const fetched = async (url) => {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url}: ${response.status}`);
  return new DOMParser().parseFromString(await response.text(), "text/html").body;
};

const load = async (place) => {
  try {
    place.replaceWith(...(await fetched(place.dataset.fetch)).childNodes);
  } catch {
    place.querySelector("p").append(" could not be fetched; follow the link to see why");
  }
};

// The script of the report's page, which filters and opens questions, begins when they are there.
const questions = document.querySelector("[data-answers]");
if (questions) {
  const { answers } = questions.dataset;
  await load(questions);
  const list = document.getElementById("list");
  if (list) {
    list.dataset.answers = answers;
    await import("/static/page.js");
  }
}
for (const place of document.querySelectorAll(".part")) await load(place);
if (location.hash && !location.hash.startsWith("#sample-")) document.getElementById(location.hash.slice(1))?.scrollIntoView();

const unfinished = document.getElementById("unfinished");
if (unfinished) stream(unfinished.dataset.events, { begun: () => location.reload(), ended: () => location.reload() });
