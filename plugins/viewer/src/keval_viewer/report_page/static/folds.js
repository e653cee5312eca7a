"use strict";
// Sections that are closed at first: a link to one opens it, and printing opens all.
(() => {
  const unfold = () => {
    const folded = document.getElementById(location.hash.slice(1))?.querySelector(":scope > .folded");
    if (folded) folded.open = true;
  };
  addEventListener("hashchange", unfold);
  addEventListener("click", (event) => { if (event.target.closest("a[href^='#']")) setTimeout(unfold); });
  addEventListener("beforeprint", () => document.querySelectorAll(".folded").forEach((each) => { each.open = true; }));
  unfold();
})();
