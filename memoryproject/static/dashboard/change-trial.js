// Shows below a form what it would change in the answers, before it is saved; compares answers.
"use strict";

(() => {
  const VERDICTS = { 1: "b", 2: "w", 3: "s", b: "b", w: "w", s: "s" };
  const headers = { "X-Requested-With": "live" };

  async function show(result, button, waits) {
    result.textContent = waits;
    const body = new FormData(button.form);
    if (button.name) body.set(button.name, button.value);
    if (button.dataset.for) body.set("for", button.dataset.for);
    const address = button.hasAttribute("formaction") ? button.formAction : button.form.action;
    const answer = await fetch(address, { method: "POST", body, headers });
    const shown = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (answer.ok) result.replaceChildren(...shown.body.childNodes);
    else result.textContent = shown.querySelector("h1")?.textContent ?? `${answer.status}`;
    result.focus({ preventScroll: true });
    begin(result);
  }

  // Shows what works with a script only, and looks for the answers that are being made.
  function begin(result) {
    for (const each of result.querySelectorAll(".verdicts, .verdict-keys, [data-verdicts]")) each.hidden = false;
    for (const each of result.querySelectorAll("[data-again]")) each.hidden = true;
    count(result);
    if (result.querySelector("[data-open]")) setTimeout(() => look(result), 1500);
  }

  async function look(result) {
    const waiting = [...result.querySelectorAll("[data-open]")];
    const looks = waiting.map(async (row) => {
      const answer = await fetch(row.dataset.open, { headers }).catch(() => null);
      return !answer?.ok || (await answer.json()).open;
    });
    const open = (await Promise.all(looks)).filter(Boolean);
    if (!result.isConnected || !waiting.length) return;
    if (open.length) setTimeout(() => look(result), 1500);
    else again(result);
  }

  // Only the answers are put in, so that verdicts and the focus stay.
  async function again(result) {
    const button = result.querySelector("[data-again]");
    const body = new FormData(button.form);
    body.set(button.name, button.value);
    const answer = await fetch(button.form.action, { method: "POST", body, headers });
    if (!answer.ok) return;
    const shown = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = [...shown.querySelectorAll("article.compared")];
    result.querySelectorAll("article.compared").forEach((row, place) => {
      const sides = row.querySelector(".sides:last-of-type");
      const made = fresh[place]?.querySelector(".sides:last-of-type");
      if (row.dataset.open && sides && made) sides.replaceWith(made);
      row.removeAttribute("data-open");
    });
  }

  function count(result) {
    const told = result.querySelector(".verdicts");
    if (!told) return;
    const number = (kind) => result.querySelectorAll(`[data-verdict="${kind}"]`).length;
    told.textContent = told.dataset.words.replace(/\{([bws])\}/g, (_all, kind) => number(kind));
  }

  function judge(row, verdict) {
    row.dataset.verdict = verdict;
    for (const each of row.querySelectorAll("[data-verdicts] button")) each.setAttribute("aria-pressed", `${each.value === verdict}`);
    count(row.parentElement);
  }

  document.addEventListener("keydown", (event) => {
    const row = event.target.closest?.("[data-verdict]");
    const verdict = VERDICTS[event.key.toLowerCase()];
    if (!row || !verdict || event.ctrlKey || event.metaKey || event.altKey || !row.querySelector("[data-verdicts]")) return;
    event.preventDefault();
    event.stopPropagation();
    judge(row, verdict);
    row.nextElementSibling?.focus();
  });

  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    const row = button?.closest("[data-verdict]");
    if (row && button.closest("[data-verdicts]")) judge(row, button.value);
    const ask = button?.closest("[data-ask]");
    const result = button?.closest(".change-trial");
    if (ask && result) {
      event.preventDefault();
      show(result, ask, ask.dataset.ask);
    }
    // The form itself saves, where it warns of what isn't saved.
    const own = document.querySelector("[name='_save']");
    if (button?.matches("[data-save]") && own) {
      event.preventDefault();
      own.click();
    }
  });

  for (const button of document.querySelectorAll("[data-tries]")) {
    const result = document.createElement("div");
    Object.assign(result, { className: "change-trial", tabIndex: -1 });
    result.setAttribute("aria-live", "polite");
    button.parentElement.after(result);
    button.addEventListener("click", async (event) => {
      event.preventDefault();
      button.disabled = true;
      await show(result, button, button.dataset.tries);
      button.disabled = false;
    });
  }
  for (const page of document.querySelectorAll(".change-trial")) begin(page);
})();
