// Puts the message that somebody wants to answer above the reply box; sent with it, as its quote.
"use strict";

(() => {
  const shown = document.querySelector(".quoting");
  const timeline = document.getElementById("timeline");
  const box = document.getElementById("takeover-text");
  if (!shown || !timeline || !box) return;

  function quote(id, text) {
    shown.querySelector("input[name=quote]").value = id;
    shown.querySelector(".quoting-text").textContent = text;
    shown.hidden = !id;
    box.focus();
  }

  // The messages are made anew by each look for new ones.
  timeline.addEventListener("click", (event) => {
    const act = event.target.closest(".quote-act");
    if (!act) return;
    event.preventDefault();
    const message = act.closest(".bubble");
    const words = message.querySelector(":scope > .text") ?? message.querySelector(".kind");
    const text = (words?.textContent ?? "").trim().replace(/\s+/g, " ");
    quote(message.dataset.message, text.length > 120 ? `${text.slice(0, 119)}…` : text);
  });
  shown.querySelector(".quote-nothing").addEventListener("click", (event) => {
    event.preventDefault();
    quote("", "");
  });
})();
