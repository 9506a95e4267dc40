// The page of an answer.
(() => {
  // A button fills a text field with another text to begin with.
  for (const button of document.querySelectorAll("[data-fill]")) {
    const field = document.getElementById(button.dataset.fill);
    button.hidden = false;
    button.addEventListener("click", () => { field.value = button.dataset.text; field.focus(); });
  }

  // What takes a moment to find comes after the page; where it doesn't come, its link stays.
  for (const part of document.querySelectorAll("[data-live-part]")) {
    fetch(part.dataset.livePart, { headers: { "X-Requested-With": "live" } })
      .then((answer) => (answer.ok ? answer.text() : Promise.reject(answer.status)))
      .then((text) => {
        const read = new DOMParser().parseFromString(text, "text/html");
        part.replaceChildren(...read.body.childNodes);
      })
      .catch(() => {});
  }
})();
