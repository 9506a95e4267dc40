// Sends a reply by Ctrl+Enter (or ⌘+Enter), and each form of the panel once.
"use strict";

for (const form of document.querySelectorAll("form[data-once]")) {
  form.addEventListener("submit", (event) => {
    if (form.dataset.sent) {
      event.preventDefault();
      return;
    }
    form.dataset.sent = "yes";
  });
}

for (const box of document.querySelectorAll("textarea[data-send-by-keys]")) {
  box.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !event.isComposing) {
      event.preventDefault();
      box.form.requestSubmit();
    }
  });
}

// Whoever comes back to the page by the browser's history may send again.
window.addEventListener("pageshow", () => {
  for (const form of document.querySelectorAll("form[data-once]")) {
    delete form.dataset.sent;
  }
});
