// Buttons that print their page. Browsers offer to save it as PDF, too.
"use strict";

for (const button of document.querySelectorAll("button[data-print]")) {
  button.hidden = false;
  button.addEventListener("click", () => print());
}
