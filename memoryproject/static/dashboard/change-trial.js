// Shows below a form what its text would change in the answers, before it is saved.
"use strict";

(() => {
  for (const button of document.querySelectorAll("[data-tries]")) {
    const result = document.createElement("div");
    Object.assign(result, { className: "change-trial", tabIndex: -1 });
    result.setAttribute("aria-live", "polite");
    button.parentElement.after(result);
    button.addEventListener("click", async (event) => {
      event.preventDefault();
      button.disabled = true;
      result.textContent = button.dataset.tries;
      const body = new FormData(button.form);
      if (button.dataset.for) body.set("for", button.dataset.for);
      const answer = await fetch(button.formAction, { method: "POST", body, headers: { "X-Requested-With": "live" } });
      const shown = new DOMParser().parseFromString(await answer.text(), "text/html");
      if (answer.ok) result.replaceChildren(...shown.body.childNodes);
      else result.textContent = shown.querySelector("h1")?.textContent ?? `${answer.status}`;
      button.disabled = false;
      result.focus({ preventScroll: true });
    });
  }
})();
