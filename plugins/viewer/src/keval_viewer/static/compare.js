// Draws the questions of two arms as lines; their answers are fetched from the runs of both.
import "/static/slopes.js";

const data = document.getElementById("pairs");
if (data) {
  const { answers, samples, ...chart } = JSON.parse(data.textContent);
  const fetched = async (url) => {
    const response = await fetch(url).catch(() => null);
    return response?.ok ? response.text() : null;
  };
  const both = (id) => Promise.all(answers.map(async ([url, arm]) => [await fetched(url + encodeURIComponent(id)), arm]));
  const drawn = globalThis.keval.slopes({ ...chart, link: (id) => samples + encodeURIComponent(id), answers: both });
  drawn.querySelector("details").open = true;
  data.replaceWith(drawn);
}
