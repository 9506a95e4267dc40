// Shows how far a forgetting is while the page is open, and chooses all hits of a search.
"use strict";

const EVERY = 1000;
const bar = document.getElementById("progress");
const all = document.querySelector("[data-all]");

async function look() {
  const headers = { "X-Requested-With": "live" };
  const answer = await fetch(bar.dataset.address, { headers, cache: "no-store", redirect: "error" });
  // Logged out, or no right any more: the page itself says so.
  if ([401, 403].includes(answer.status)) {
    location.reload();
  }
  if (!answer.ok) {
    return;
  }
  const progress = await answer.json();
  bar.value = progress.done;
  document.getElementById("progress-text").textContent = progress.text;
  if (progress.over) {
    location.reload();
  }
}

if (bar) {
  // The next look waits for the last one, and a server that is away is asked again.
  const again = () => look().catch(() => {}).finally(() => setTimeout(again, EVERY));
  setTimeout(again, EVERY);
}

if (all) {
  all.hidden = all.disabled = document.querySelector("[data-all-label]").hidden = false;
  all.addEventListener("change", () => {
    for (const box of document.querySelectorAll("input[name=chosen]")) {
      box.checked = all.checked;
    }
  });
}
