// Asks for the assistant's draft of a reply, and puts it into the reply box where that is empty; else
// it stands beside what was typed.
"use strict";

(() => {
  const lesson = document.querySelector(".lesson");
  lesson?.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    lesson.remove();
    document.getElementById("takeover-text")?.focus();
  });
  lesson?.querySelector(".lesson-drop").addEventListener("click", (event) => {
    event.preventDefault();
    lesson.remove();
  });

  const place = document.getElementById("draft");
  const box = document.getElementById("takeover-text");
  const ask = document.querySelector(".draft-ask");
  if (!place || !box || !ask) return;
  const EVERY = 1_500;

  function put(text) {
    box.value = text;
    box.dispatchEvent(new Event("input", { bubbles: true }));
    box.focus();
  }

  function words() {
    return place.querySelector(".draft-words")?.content.textContent;
  }

  function show() {
    const text = words();
    if (text === undefined) return;
    const isFree = !box.value.trim();
    if (isFree) put(text);
    place.querySelector(".draft-text").hidden = isFree;
    place.querySelector(".draft-use").hidden = isFree;
    place.querySelector(".draft-drop").hidden = false;
  }

  /** The server says on a page of its own what is wrong. */
  function askByForm() {
    box.form.action = ask.formAction;
    box.form.submit();
  }

  async function look(fields) {
    const form = new FormData();
    form.append("csrfmiddlewaretoken", box.form.elements.csrfmiddlewaretoken.value);
    for (const [name, value] of Object.entries(fields)) form.append(name, value);
    const headers = { "X-Requested-With": "live" };
    const answer = await fetch(ask.formAction, { method: "POST", body: form, headers });
    if (!answer.ok) throw new Error(answer.status);
    place.innerHTML = await answer.text();
    const made = place.querySelector("input[name=draft]");
    if (made?.dataset.state === "waiting") {
      setTimeout(() => look({ draft: made.value }).catch(askByForm), EVERY);
    } else {
      ask.disabled = false;
      show();
    }
  }

  ask.addEventListener("click", (event) => {
    event.preventDefault();
    ask.disabled = true;
    look({ new: "1" }).catch(askByForm);
  });
  box.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && event.altKey && !event.isComposing) {
      event.preventDefault();
      ask.click();
    }
  });
  place.addEventListener("click", ({ target }) => {
    if (target.matches(".draft-use")) {
      put(words());
      show();
    } else if (target.matches(".draft-drop")) {
      if (box.value === words()) put("");
      place.replaceChildren();
    }
  });
  show();
})();
