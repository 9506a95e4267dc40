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

  // The call says that this page is open, too. Who has it in the background isn't viewing it.
  async function call() {
    try {
      show((await (await window.staffLive.ask(place.dataset.address)).json()).text);
    } catch (error) {
      show("");
      throw error;
    }
  }

  const again = window.staffLive.keepAsking(call, { every: EVERY });
  if (!document.hidden) again();
})();
