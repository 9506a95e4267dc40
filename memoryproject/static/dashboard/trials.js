// The page of an answer's trials: while a worker makes one, and what a tick or an edit chooses.
(() => {
  const EVERY = 1500;

  // Only the trials come anew: what is typed in the form stays, and what is typed in a trial.
  const show = async () => {
    const answer = await fetch(location.href);
    if (!answer.ok) return location.reload();
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = page.getElementById("trials");
    if (document.querySelector("#trials details.teach[open]")) return;
    document.getElementById("trials").replaceWith(document.importNode(fresh, true));
  };
  const watch = async () => {
    const trials = document.getElementById("trials");
    if (!trials || !("open" in trials.dataset)) return;
    try {
      const answer = await fetch(location.href, { headers: { "X-Requested-With": "live" } });
      if ([401, 403].includes(answer.status)) return window.staffSession.refused(answer.status);
      if (answer.status === 404) return location.reload();
      if (answer.ok && !(await answer.json()).open) await show();
    } catch { /* The next one may get through. */ }
    setTimeout(watch, EVERY);
  };
  setTimeout(watch, EVERY);

  // Who ticks a text or edits the instructions wants them used.
  for (const part of document.querySelectorAll("[data-chooses]")) {
    part.addEventListener("input", () => {
      const radio = document.querySelector(`#trial-form input[type="radio"][value="${part.dataset.chooses}"]`);
      if (radio) radio.checked = true;
    });
  }

  // A second click while the first is on its way.
  const send = document.querySelector('#trial-form [type="submit"]');
  document.getElementById("trial-form")?.addEventListener("submit", () => { send.disabled = true; });
  addEventListener("pageshow", () => { if (send) send.disabled = false; });
})();
