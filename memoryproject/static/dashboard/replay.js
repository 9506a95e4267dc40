// The page of an answer, and its parts beside a conversation.
"use strict";

(() => {
  function wire(root) {
    // A button fills a text field with another text to begin with.
    for (const button of root.querySelectorAll("[data-fill]")) {
      button.hidden = false;
      button.addEventListener("click", () => {
        const field = document.getElementById(button.dataset.fill);
        field.value = button.dataset.text;
        field.focus();
      });
    }

    // What takes a moment to find comes after the page; where it doesn't come, its link stays.
    for (const part of root.querySelectorAll("[data-live-part]")) {
      fetch(part.dataset.livePart, { headers: { "X-Requested-With": "live" } })
        .then((answer) => (answer.ok ? answer.text() : Promise.reject(answer.status)))
        .then((text) => {
          const read = new DOMParser().parseFromString(text, "text/html");
          part.replaceChildren(...read.body.childNodes);
        })
        .catch(() => {});
    }
  }

  wire(document);
  window.staffReplay = { wire };
})();
