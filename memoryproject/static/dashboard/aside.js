// The pane beside a conversation: the person, why an answer was given, and what to teach. An answer
// is chosen by a click, Enter or "w"; its forms are sent without leaving the page.
"use strict";

(() => {
  const timeline = document.getElementById("timeline");
  const aside = document.getElementById("about");
  const list = aside?.querySelector("[role=tablist]");
  if (!timeline || !list) return;

  const HEADERS = { "X-Requested-With": "pane" };
  const tabs = [...list.querySelectorAll("[role=tab]")];
  const panel = (name) => document.getElementById(`panel-${name}`);
  // The bubble whose answer is shown, and the address of that answer's own page.
  let shown = { id: "", page: "" };

  function show(name) {
    for (const tab of tabs) {
      const isShown = tab.id === `tab-${name}`;
      tab.setAttribute("aria-selected", String(isShown));
      tab.tabIndex = isShown ? 0 : -1;
      document.getElementById(tab.getAttribute("aria-controls")).hidden = !isShown;
    }
  }

  const mark = () => {
    for (const each of timeline.querySelectorAll(".bubble")) each.classList.toggle("asked", each.id === shown.id);
  };
  new MutationObserver(mark).observe(timeline, { childList: true });

  /** Puts an answer's parts into their panels. Returns false where the server sent something else. */
  function fill(text) {
    const read = new DOMParser().parseFromString(text, "text/html");
    const parts = [...read.querySelectorAll("[data-part]")];
    const notes = read.querySelectorAll(".messagelist > li");
    if (notes.length) window.staffNotes.say(notes);
    for (const part of parts) {
      const place = panel(part.dataset.part);
      place.replaceChildren(part);
      window.staffReplay.wire(place);
    }
    return parts.length > 0;
  }

  async function open(bubble, name, byKey) {
    const link = bubble?.querySelector(".why-act");
    if (!link) return;
    const asked = { id: bubble.id, page: link.href };
    shown = asked;
    mark();
    show(name);
    // On a narrow screen the pane opens by its anchor.
    if (getComputedStyle(aside).display === "none") location.hash = "about";
    for (const each of ["why", "teach"]) panel(each).setAttribute("aria-busy", "true");
    const answer = await fetch(asked.page, { headers: HEADERS }).catch(() => null);
    const text = answer?.ok ? await answer.text() : "";
    // Another answer was chosen meanwhile.
    if (shown !== asked) return;
    if (!answer) {
      panel(name).removeAttribute("aria-busy");
      panel(name).replaceChildren(document.getElementById("draft-offline").content.cloneNode(true));
      return;
    }
    if (!fill(text)) {
      location.assign(asked.page);
      return;
    }
    for (const each of ["why", "teach"]) {
      panel(each).removeAttribute("aria-busy");
      window.staffDrafts.bringBack(panel(each));
    }
    if (byKey) document.getElementById(`tab-${name}`).focus();
  }

  function toPerson() {
    const bubble = document.getElementById(shown.id);
    shown = { id: "", page: "" };
    mark();
    show("person");
    (bubble ?? tabs[0]).focus({ preventScroll: true });
  }

  timeline.addEventListener("click", (event) => {
    const link = event.target.closest(".why-act");
    const other = event.target.closest("a, button, summary, details, audio, video, input");
    const isPlain = !event.ctrlKey && !event.metaKey && !event.shiftKey && event.button === 0;
    if (!isPlain || (other && other !== link) || (!link && String(getSelection()))) return;
    const bubble = event.target.closest(".bubble");
    if (!bubble?.querySelector(".why-act")) return;
    event.preventDefault();
    // A link that was pressed by the keyboard has no place on the screen.
    open(bubble, "why", event.detail === 0);
  });

  list.hidden = false;
  list.addEventListener("click", (event) => {
    const tab = event.target.closest("[role=tab]");
    if (tab) show(tab.id.slice("tab-".length));
  });
  list.addEventListener("keydown", (event) => {
    const right = document.documentElement.dir === "rtl" ? -1 : 1;
    const step = { ArrowRight: right, ArrowLeft: -right }[event.key];
    if (!step) return;
    const next = tabs[(tabs.indexOf(document.activeElement) + step + tabs.length) % tabs.length];
    show(next.id.slice("tab-".length));
    next.focus();
  });

  const NAMES = { w: "why", t: "teach", KeyW: "why", KeyT: "teach" };
  document.addEventListener("keydown", (event) => {
    const { target } = event;
    const isTyping = target.closest?.("input, textarea, select, [contenteditable], dialog[open]");
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !event.isComposing) {
      if (target.matches("#panel-teach textarea")) target.form.requestSubmit(target.form.querySelector(".primary"));
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape" && aside.contains(target) && shown.id) toPerson();
    // Where letters aren't Latin, as on a Hebrew keyboard, the place of the key counts.
    const name = event.key === "Enter" ? target.matches(".bubble") && "why" : NAMES[event.key] ?? (event.key > "~" && NAMES[event.code]);
    if (isTyping || !name) return;
    const bubble = target.closest(".bubble");
    if (bubble) open(bubble, name, true);
    else if (shown.id) show(name);
    else return;
    event.preventDefault();
  });

  aside.addEventListener("click", (event) => {
    const link = event.target.closest("#panel-why a[href^='#correct-']");
    if (!link) return;
    event.preventDefault();
    show("teach");
    document.getElementById(link.hash.slice(1))?.focus();
  });

  /** Sends a form; what comes back takes the places of the parts. Returns whether it did. */
  async function send(form, submitter, changes) {
    if (form.dataset.sent) return false;
    form.dataset.sent = "yes";
    const { page } = shown;
    const body = new FormData(form, submitter);
    for (const [name, value] of Object.entries(changes)) body.set(name, value);
    const answer = await fetch(form.getAttribute("action"), { method: "POST", body, headers: HEADERS }).catch(() => null);
    delete form.dataset.sent;
    if (!answer) {
      window.staffDrafts.unsent(form);
      return false;
    }
    // What wasn't stored comes back in its form, without having been sent on.
    const text = await answer.text();
    if (answer.redirected) window.staffDrafts.stored(form);
    if (page !== shown.page) return false;
    const isFilled = answer.ok && fill(text);
    if (!isFilled) location.assign(page);
    return isFilled;
  }

  aside.addEventListener("submit", async (event) => {
    const { target: form, submitter } = event;
    const place = form.closest("#panel-why, #panel-teach");
    if (event.defaultPrevented || !place || submitter?.hasAttribute("formaction")) return;
    event.preventDefault();
    if (!(await send(form, submitter, {}))) return;
    const refused = place.querySelector("form [role=alert]")?.closest("form").querySelector("textarea");
    (refused ?? document.getElementById(place.getAttribute("aria-labelledby"))).focus();
  });

  document.getElementById("undo-form")?.addEventListener("submit", (event) => {
    if (!shown.page || !event.submitter?.closest("#toasts")) return;
    event.preventDefault();
    send(event.target, event.submitter, { next: new URL(shown.page).pathname });
  });
})();
