// Says who else has this conversation open, so that two people don't answer at once.
"use strict";

(() => {
  const EVERY = 10000;
  const place = document.getElementById("viewers");
  if (!place) return;

  function show(text) {
    // Said again, a screen reader would read it again.
    if (place.textContent !== text) place.textContent = text;
    place.hidden = !text;
  }

  // Who has the page in the background isn't viewing it.
  async function call() {
    if (document.hidden) return;
    const headers = { "X-Live": "yes" };
    const answer = await fetch(place.dataset.address, { headers, cache: "no-store", redirect: "error" });
    show(answer.ok ? (await answer.json()).text : "");
  }

  // The call says that this page is open, too: no stream takes its place.
  window.staffLive.keepAsking(call, { every: EVERY, isToldOf: false }).again();
})();
