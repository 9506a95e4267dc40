// Canned replies in the reply box: "/" and a shortcut, or the button, offer them, filled for this
// chat. What is chosen stands in the box, to be read and changed before it is sent.
"use strict";

(() => {
  const box = document.querySelector("textarea[data-canned]");
  const list = document.getElementById("canned-list");
  const opener = document.querySelector(".canned-open");
  if (!box || !list || !opener) return;

  let asked = 0;
  let dismissed = "";

  /** The "/word" that ends at the caret, or null. */
  function token() {
    if (box.selectionStart !== box.selectionEnd) return null;
    const found = box.value.slice(0, box.selectionStart).match(/(?:^|\s)(\/[^\s/]{0,60})$/);
    return found ? found[1] : null;
  }

  const options = () => [...list.querySelectorAll("[role=option]")];
  const isOpen = () => !list.hidden;

  function mark(index) {
    options().forEach((each, at) => each.setAttribute("aria-selected", String(at === index)));
    const marked = options()[index];
    if (marked) {
      box.setAttribute("aria-activedescendant", marked.id);
      marked.scrollIntoView({ block: "nearest" });
    }
  }

  function close() {
    list.hidden = true;
    asked += 1;
    box.removeAttribute("aria-activedescendant");
  }

  function insert(text) {
    const typed = token() ?? "";
    const begin = box.selectionStart - typed.length;
    close();
    box.focus();
    box.setSelectionRange(begin, begin + typed.length);
    // This way the browser's own undo takes it back.
    if (!document.execCommand("insertText", false, text)) {
      box.setRangeText(text, begin, begin + typed.length, "end");
    }
  }

  function option(reply, at) {
    const row = document.createElement("li");
    row.id = `canned-${at}`;
    row.role = "option";
    const head = document.createElement("bdi");
    head.textContent = `/${reply.shortcut}`;
    const name = document.createElement("strong");
    name.textContent = reply.name;
    name.dir = "auto";
    const text = document.createElement("span");
    text.textContent = reply.text;
    text.dir = "auto";
    row.append(head, " ", name, text);
    // The box keeps the caret.
    row.addEventListener("mousedown", (event) => event.preventDefault());
    row.addEventListener("click", () => insert(reply.text));
    return row;
  }

  async function show() {
    const typed = token();
    if (typed === null || typed === dismissed) {
      if (typed === null) dismissed = "";
      close();
      return;
    }
    const mine = (asked += 1);
    const address = `${box.dataset.canned}?q=${encodeURIComponent(typed.slice(1))}`;
    const answer = await fetch(address, { redirect: "error" });
    if (!answer.ok || mine !== asked) return;
    const { replies } = await answer.json();
    if (mine !== asked) return;
    list.replaceChildren(...replies.map(option));
    if (!replies.length && typed === "/") list.append(document.getElementById("canned-none").content.cloneNode(true));
    list.hidden = !list.children.length;
    mark(0);
  }

  box.addEventListener("input", () => show().catch(close));
  box.addEventListener("blur", close);
  box.addEventListener("keydown", (event) => {
    if (!isOpen() || event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
    const all = options();
    const at = all.findIndex((each) => each.getAttribute("aria-selected") === "true");
    if (event.key === "Escape") {
      dismissed = token() ?? "";
      close();
    } else if (event.key === "ArrowDown") mark((at + 1) % all.length);
    else if (event.key === "ArrowUp") mark((at + all.length - 1) % all.length);
    else if ((event.key === "Enter" || event.key === "Tab") && all[at]) all[at].click();
    else return;
    event.preventDefault();
    event.stopPropagation();
  });

  opener.hidden = false;
  // Before the click the box would lose the focus, and close the list.
  opener.addEventListener("mousedown", (event) => event.preventDefault());
  opener.addEventListener("click", () => {
    const wasOpen = isOpen();
    box.focus();
    if (wasOpen) {
      close();
      return;
    }
    dismissed = "";
    if (token() === null) {
      const before = box.value.slice(0, box.selectionStart);
      const slash = before && !/\s$/.test(before) ? " /" : "/";
      box.setRangeText(slash, box.selectionStart, box.selectionEnd, "end");
    }
    show().catch(close);
  });
})();
