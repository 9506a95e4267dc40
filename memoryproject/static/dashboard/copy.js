// Buttons that copy what is shown only once. Browsers allow that only by HTTPS and on this machine;
// elsewhere the text is selected, for the keys that copy.
"use strict";

for (const button of document.querySelectorAll("button[data-copies]")) {
  const text = document.getElementById(button.dataset.copies);
  const result = button.parentElement.querySelector("[role=status]");
  button.hidden = false;
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text.innerText.trim());
      result.textContent = result.dataset.copied;
    } catch {
      getSelection().selectAllChildren(text);
      result.textContent = result.dataset.selected;
    }
  });
}
