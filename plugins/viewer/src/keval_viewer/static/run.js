// The parts of a run's page that take longer are fetched when they come near. They are HTML that keval rendered, with
// all text of others escaped.
const load = async (place) => {
  const response = await fetch(place.dataset.part);
  const html = await response.text();
  if (!response.ok) return;
  const parsed = new DOMParser().parseFromString(html, "text/html");
  place.replaceWith(...parsed.body.childNodes);
};

for (const place of document.querySelectorAll(".part")) load(place);
