// Shows the end of a conversation first, keeps it up to date while somebody looks at it, and lets
// a keyboard go through it.
"use strict";

(() => {
  const NEAR_THE_END = 60;
  const timeline = document.getElementById("timeline");
  if (!timeline) return;

  const toTheEnd = () => { timeline.scrollTop = timeline.scrollHeight; };
  const isAtTheEnd = () =>
    timeline.scrollHeight - timeline.scrollTop - timeline.clientHeight < NEAR_THE_END;
  const bubbles = () => [...timeline.querySelectorAll(".bubble")];
  const toEnd = document.querySelector(".to-end");
  let atTheEnd = false;
  const chosen = () => document.activeElement?.closest(".bubble") ?? null;

  async function look() {
    const headers = { "If-None-Match": timeline.dataset.tag };
    if (timeline.dataset.news) headers["X-News"] = timeline.dataset.news;
    const answer = await window.staffLive.ask(location.href, headers);
    if (answer.status !== 200) return;
    const text = await answer.text();
    const wasAtTheEnd = isAtTheEnd();
    const where = chosen()?.id;
    const last = bubbles().at(-1)?.id;
    const top = timeline.getBoundingClientRect().top;
    // The oldest messages leave the page when new ones come: what is being read stays in its place.
    const read = bubbles().find((each) => each.getBoundingClientRect().bottom > top);
    const readAt = read?.getBoundingClientRect().top;
    timeline.innerHTML = text;
    const readNow = read && document.getElementById(read.id);
    if (readNow) timeline.scrollTop += readNow.getBoundingClientRect().top - readAt;
    timeline.dataset.tag = answer.headers.get("ETag");
    timeline.dataset.made = answer.headers.get("X-Made");
    // Who puts the conversation off has seen what came in by now.
    for (const made of document.querySelectorAll(".snooze .made")) made.value = timeline.dataset.made;
    if (where) document.getElementById(where)?.focus({ preventScroll: true });
    if (wasAtTheEnd) toTheEnd();
    else if (bubbles().at(-1)?.id !== last) toEnd.hidden = false;
    await showPause();
  }

  /** Shows that a colleague paused the assistant or turned it on; what is typed stays. */
  async function showPause() {
    const panel = document.getElementById("takeover");
    const mark = document.getElementById("pause-now")?.dataset.pause ?? "";
    if (!panel || panel.dataset.pause === mark) return;
    const answer = await fetch(location.href);
    if (!answer.ok) return;
    const now = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("takeover");
    if (!now) return;
    panel.querySelector(".standing").replaceChildren(...now.querySelector(".standing").childNodes);
    panel.classList.toggle("paused", now.classList.contains("paused"));
    panel.dataset.pause = now.dataset.pause;
  }

  toEnd.querySelector("button").addEventListener("click", () => {
    toTheEnd();
    timeline.focus({ preventScroll: true });
  });
  timeline.addEventListener("scroll", () => {
    atTheEnd = isAtTheEnd();
    if (atTheEnd) toEnd.hidden = true;
  });
  // Who reads the end stays there when a picture appears above it, or the reply box grows.
  const stay = () => { if (atTheEnd) toTheEnd(); };
  timeline.addEventListener("load", stay, true);
  new ResizeObserver(stay).observe(timeline);

  // Where to begin: at the message that the address names, at what is unread, or at the end.
  const named = location.hash.startsWith("#m-") && document.getElementById(location.hash.slice(1));
  const news = document.getElementById("news");
  if (named) {
    named.scrollIntoView({ block: "center" });
    named.focus({ preventScroll: true });
  } else if (news) {
    timeline.scrollTop = news.offsetTop - NEAR_THE_END;
    toEnd.hidden = isAtTheEnd();
  } else if (!new URLSearchParams(location.search).has("after")) {
    toTheEnd();
  }
  atTheEnd = isAtTheEnd();
  if (timeline.dataset.live) window.staffLive.keepAsking(look);

  // Reviewed is what was seen, and not what came in after the page was made.
  const review = document.getElementById("review-form");
  review?.addEventListener("submit", () => {
    if (!timeline.dataset.live) return;
    const last = bubbles().at(-1);
    if (last) review.querySelector(".seen").value = last.dataset.message;
    if (timeline.dataset.made) review.querySelector(".made").value = timeline.dataset.made;
  });

  function go(step) {
    const all = bubbles();
    const last = all.length - 1;
    const from = all.indexOf(chosen());
    // Each look makes the border anew; nothing may be left behind it.
    const news = document.getElementById("news");
    const unread = step > 0 && news ? all.findIndex((each) => news.compareDocumentPosition(each) & Node.DOCUMENT_POSITION_FOLLOWING) : -1;
    const begin = unread < 0 ? last : unread;
    const to = from < 0 ? begin : Math.min(Math.max(from + step, 0), last);
    all[to]?.focus();
  }

  function note() {
    const form = document.querySelector(".note-form");
    if (!form) return;
    const message = chosen();
    if (message) {
      form.querySelector(".about").value = message.dataset.message;
      form.querySelector(".about-text bdi").textContent =
        (message.querySelector(".text")?.textContent ?? "").slice(0, 60);
      form.querySelector(".about-text").hidden = false;
    }
    // On a narrow screen the sidebar opens by its anchor.
    if (!form.offsetParent) location.hash = "notes";
    form.querySelector("textarea").focus();
  }

  function answer() {
    const quote = chosen()?.querySelector(".quote-act");
    if (quote) quote.click();
    else document.getElementById("takeover-text")?.focus();
  }

  document.querySelector(".about-nothing")?.addEventListener("click", (event) => {
    event.preventDefault();
    const form = event.target.closest("form");
    form.querySelector(".about").value = "";
    form.querySelector(".about-text").hidden = true;
    form.querySelector("textarea").focus();
  });

  const help = document.querySelector("dialog.keys");
  const opener = document.querySelector(".keys-help");
  opener.hidden = false;
  opener.addEventListener("click", () => help.showModal());

  const press = (selector, within = document) => within.querySelector(selector)?.click();
  const KEYS = {
    j: () => go(1),
    k: () => go(-1),
    r: () => press("[data-key=r]"),
    b: () => (chosen() ? press("button[form=message-acts]", chosen()) : press("[data-key=b]")),
    n: note,
    q: answer,
    f: () => document.querySelector(".talk-tools input[name=q]").focus(),
    "?": () => help.showModal(),
  };
  const PLACES = { KeyJ: "j", KeyK: "k", KeyR: "r", KeyB: "b", KeyN: "n", KeyQ: "q", KeyF: "f" };
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") document.querySelector("aside:is(:target, :has(:target)) .close-about")?.click();
    const isTyping = event.target.closest?.("input, textarea, select, [contenteditable]");
    if (isTyping || help.open || event.ctrlKey || event.metaKey || event.altKey) return;
    // Where letters aren't Latin, as on a Hebrew keyboard, the place of the key counts.
    const act = KEYS[event.key] ?? (event.key > "~" ? KEYS[PLACES[event.code]] : undefined);
    if (!act) return;
    event.preventDefault();
    act();
  });
})();
