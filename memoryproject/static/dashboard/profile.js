// Shows the prompt beside the form without leaving the page; without this the button loads it anew.
"use strict";

const button = document.getElementById("preview-button");
const place = document.getElementById("preview");
let latest = 0;

async function show() {
  const number = ++latest;
  const body = new FormData(button.form);
  place.setAttribute("aria-busy", "true");
  try {
    const answer = await fetch(button.formAction, { method: "POST", body, headers: { "X-Part": "yes" } });
    if (answer.status !== 200 && answer.status !== 422) throw new Error(String(answer.status));
    const shown = await answer.text();
    if (number === latest) place.innerHTML = shown;
  } catch (_error) {
    // As without a script: the page itself says what is wrong.
    button.dataset.plain = "yes";
    button.form.requestSubmit(button);
  } finally {
    place.removeAttribute("aria-busy");
  }
}

if (button && place) {
  button.addEventListener("click", (event) => {
    if (button.dataset.plain) return;
    event.preventDefault();
    show();
  });
}
