// Sends a reply by Ctrl+Enter (or ⌘+Enter), and each form of the panel once; counts down until
// WhatsApp takes no reply any more.
"use strict";

document.addEventListener("submit", (event) => {
  const { target: form } = event;
  if (!form.matches("form[data-once]") || event.defaultPrevented) return;
  if (form.dataset.sent) event.preventDefault();
  form.dataset.sent = "yes";
});

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

const MINUTE = 60_000;
const deadline = document.querySelector("#takeover-window[data-closes]");

/** The same words as Django's, in the page's language; hours alone while there are many. */
function inWords(minutes) {
  const [count, unit] = minutes < 120 ? [minutes, "minute"] : [Math.floor(minutes / 60), "hour"];
  const style = { style: "unit", unit, unitDisplay: "long" };
  return new Intl.NumberFormat(document.documentElement.lang, style).format(count);
}

function countDown() {
  const minutes = Math.floor((new Date(deadline.dataset.closes) - Date.now()) / MINUTE);
  if (minutes < 0) {
    deadline.setAttribute("role", "alert");
    deadline.textContent = document.getElementById("takeover-over").content.textContent;
    deadline.classList.add("closed");
    return;
  }
  const left = deadline.querySelector("[data-left]");
  const words = inWords(minutes);
  if (left.textContent !== words) left.textContent = words;
  setTimeout(countDown, MINUTE / 2);
}

if (deadline) setTimeout(countDown, MINUTE / 2);
