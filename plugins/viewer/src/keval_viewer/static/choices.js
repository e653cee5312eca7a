// A form of choices is sent as soon as one is made; its button is for browsers without scripts.
for (const form of document.querySelectorAll("form[data-submits]")) {
  form.classList.add("scripted");
  form.addEventListener("change", () => form.requestSubmit());
}
