// Searches from the head of any page while somebody types; "/" goes there, "?" shows the shortcuts.
"use strict";

(() => {
  const PAUSE = 250;
  const box = document.querySelector(".search-box");
  if (!box) return;
  const field = box.elements.words;
  const hits = box.querySelector(".search-hits");
  const said = box.querySelector(".search-said");

  let timer = 0;
  let asked = null;
  let shown = "";

  function close() {
    clearTimeout(timer);
    asked?.abort();
    hits.hidden = true;
    shown = "";
  }

  function put(html) {
    hits.innerHTML = html;
    hits.classList.remove("old");
    hits.hidden = false;
    const count = hits.querySelector(".search-count")?.textContent ?? "";
    if (said.textContent !== count) said.textContent = count;
  }

  // Only the answer to what is in the field now is shown: an older request is cancelled.
  async function find() {
    const words = field.value.trim();
    if (!words) {
      close();
      return;
    }
    if (words === shown) return;
    asked?.abort();
    asked = new AbortController();
    const { signal } = asked;
    hits.classList.add("old");
    const address = `${box.getAttribute("action")}?${new URLSearchParams({ words })}`;
    const answer = await fetch(address, { headers: { "X-Search": "yes" }, signal, redirect: "error" });
    if (!answer.ok) throw new Error(String(answer.status));
    const html = await answer.text();
    if (signal.aborted) return;
    shown = words;
    put(html);
  }

  function failed(error) {
    if (error.name === "AbortError") return;
    const told = document.createElement("p");
    told.className = "search-nothing";
    told.textContent = box.dataset.error;
    put(told.outerHTML);
    said.textContent = box.dataset.error;
  }

  field.addEventListener("input", (event) => {
    clearTimeout(timer);
    if (!event.isComposing) timer = setTimeout(() => find().catch(failed), PAUSE);
  });
  field.addEventListener("compositionend", () => { timer = setTimeout(() => find().catch(failed), PAUSE); });
  field.addEventListener("focus", () => { if (document.activeElement === field && shown && hits.hidden) hits.hidden = false; });
  box.addEventListener("submit", (event) => { if (!field.value.trim()) event.preventDefault(); });
  document.addEventListener("pointerdown", (event) => { if (!box.contains(event.target)) close(); });
  box.addEventListener("focusout", (event) => { if (event.relatedTarget && !box.contains(event.relatedTarget)) close(); });

  // The field is before the first hit; after the last one there is nothing.
  function go(step) {
    const all = [...hits.querySelectorAll(".search-hit, .search-more a")];
    const to = all.indexOf(document.activeElement) + step;
    (to < 0 ? field : all[Math.min(to, all.length - 1)])?.focus();
  }

  box.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    if (event.key === "Escape") {
      // The first one closes the hits, and another one leaves the field.
      const wasOpen = !hits.hidden;
      close();
      if (wasOpen) field.focus();
      else field.blur();
    } else if (!hits.hidden && event.key === "ArrowDown") go(1);
    else if (!hits.hidden && event.key === "ArrowUp") go(-1);
    else return;
    event.preventDefault();
    event.stopPropagation();
  });

  // A page with shortcuts of its own has a list of its own.
  const help = document.querySelector("dialog.keys:not(#keys-everywhere)") ? null : document.getElementById("keys-everywhere");
  document.addEventListener("keydown", (event) => {
    const isTyping = event.target.closest?.("input:not([type=checkbox]), textarea, select, dialog[open], [contenteditable]");
    // A list's own search has the focus when its page opens: its first letter isn't "/".
    const isFree = event.key === "/" && event.target !== field && event.target.matches?.("input[type=search]") && !event.target.value;
    if ((isTyping && !isFree) || event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "/") {
      event.preventDefault();
      // On a small screen the search is a page of its own.
      if (field.offsetParent) field.select();
      else document.querySelector(".search-open")?.click();
    } else if (event.key === "?" && help && !help.open) {
      event.preventDefault();
      help.showModal();
    }
  });
})();
