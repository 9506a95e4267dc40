// The page of an answer: a button that fills a text field with another text to begin with.
(() => {
  for (const button of document.querySelectorAll("[data-fill]")) {
    const field = document.getElementById(button.dataset.fill);
    button.hidden = false;
    button.addEventListener("click", () => { field.value = button.dataset.text; field.focus(); });
  }
})();
