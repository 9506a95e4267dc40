// Chooses all conversations of a page at once, and keeps the list up to date while it is open: on
// its own page, and beside a conversation.
"use strict";

(() => {
  const EVERY_HIDDEN = 15000;
  const form = document.querySelector("form.inbox, .inbox-pane");
  if (!form) return;
  const pane = form.matches(".inbox-pane") ? form : null;
  const addressNow = () => (pane ? pane.dataset.address : location.href);
  // What scrolls, and where it begins on the screen.
  const scroller = pane ?? document.scrollingElement;
  const topOf = () => (pane ? pane.getBoundingClientRect().top : 0);

  const boxes = () => [...form.querySelectorAll(".chats input[type=checkbox]")];
  const list = () => document.getElementById("inbox-list");

  // --- all at once

  const all = form.querySelector(".choose-all");
  function countChosen() {
    if (!all) return;
    const every = boxes();
    all.checked = every.length > 0 && every.every((box) => box.checked);
    all.indeterminate = !all.checked && every.some((box) => box.checked);
  }
  if (all) all.closest("label").hidden = false;
  form.addEventListener("change", (event) => {
    if (event.target === all) boxes().forEach((box) => { box.checked = all.checked; });
    else if (event.target.closest(".chats")) countChosen();
  });

  // --- figures of the title and the menu

  const bare = document.title.replace(/^\(\d+\) /, "");
  let badge = document.querySelector(".menu-count");
  let news = Number(list().dataset.news);

  function showFigures(headers) {
    const unread = Number(headers.get("X-Unread"));
    document.title = unread ? `(${unread}) ${bare}` : bare;
    const attention = Number(headers.get("X-Attention"));
    if (badge) {
      badge.hidden = !attention;
      badge.querySelector(".menu-number").textContent = attention > 99 ? "99+" : attention;
    }
    const now = Number(headers.get("X-News"));
    if (now > news) beep();
    news = now;
  }

  // --- a sound for new messages, off until somebody wants it

  const KEY = "inbox-sound";
  const switcher = document.getElementById("inbox-sound");
  let audio = null;
  const isLoud = () => localStorage.getItem(KEY) === "on";
  const setLoud = (on) => switcher?.setAttribute("aria-pressed", String(on));

  // Browsers allow sounds only once somebody has clicked or typed in the page.
  function awake() {
    if (!isLoud()) return;
    audio ??= new AudioContext();
    if (audio.state === "suspended") audio.resume();
  }

  function beep() {
    if (!isLoud() || audio?.state !== "running") return;
    const tone = audio.createOscillator();
    const loudness = audio.createGain();
    const start = audio.currentTime;
    tone.frequency.setValueAtTime(660, start);
    tone.frequency.setValueAtTime(880, start + 0.09);
    loudness.gain.setValueAtTime(0.12, start);
    loudness.gain.exponentialRampToValueAtTime(0.001, start + 0.3);
    tone.connect(loudness).connect(audio.destination);
    tone.start(start);
    tone.stop(start + 0.3);
  }

  if (switcher) switcher.hidden = false;
  setLoud(isLoud());
  switcher?.addEventListener("click", () => {
    localStorage.setItem(KEY, isLoud() ? "off" : "on");
    setLoud(isLoud());
    awake();
    // So that one hears what it will be like.
    setTimeout(beep, 50);
  });
  for (const event of ["pointerdown", "keydown"]) document.addEventListener(event, awake);

  // --- the list

  const rowOf = (element) => element?.closest?.(".chat") ?? null;
  const byChat = (place) =>
    new Map([...place.querySelectorAll(".chat")].map((row) => [row.dataset.chat, row]));

  // Where somebody is: the focused row, or the first row in sight of a page that is scrolled.
  function anchor() {
    const focused = rowOf(document.activeElement);
    const top = scroller.scrollTop > 0 && [...form.querySelectorAll(".chat")].find((row) => row.getBoundingClientRect().top >= topOf());
    const row = focused ?? (top || null);
    return row && { chat: row.dataset.chat, top: row.getBoundingClientRect().top };
  }

  // Rows that are as before stay: a click on them isn't lost. Ticks, focus and place stay, too.
  function put(fresh, names) {
    window.staffTimes.show(fresh);
    window.staffTimes.show(form);
    const place = anchor();
    const active = rowOf(document.activeElement) && document.activeElement;
    const focus = active && { chat: rowOf(active).dataset.chat, tag: active.localName };
    const before = byChat(form);
    for (const [chat, row] of byChat(fresh)) {
      const was = before.get(chat);
      if (!was) continue;
      if (was.isEqualNode(row)) {
        row.replaceWith(was);
        continue;
      }
      const box = was.querySelector("input[type=checkbox]");
      const own = row.querySelector("input[type=checkbox]");
      if (box && own) own.checked = box.checked;
    }
    for (const name of names) {
      const part = fresh.getElementById(name);
      const old = document.getElementById(name);
      // The list holds the rows that stayed by now.
      if (name === "inbox-list" || !old.isEqualNode(part)) old.replaceWith(document.adoptNode(part));
    }
    const now = byChat(form);
    if (focus) now.get(focus.chat)?.querySelector(`${focus.tag}:not([type=hidden])`)?.focus({ preventScroll: true });
    const row = place && scroller.scrollTop > 0 && now.get(place.chat);
    if (row) scroller.scrollTop += row.getBoundingClientRect().top - place.top;
    countChosen();
  }

  const parse = (html) => new DOMParser().parseFromString(html, "text/html");

  // A whole page that a search or an action returned, in the place of this one.
  function showPage(html) {
    const fresh = parse(html);
    const own = fresh.querySelector("form.inbox");
    if (!own) {
      location.reload();
      return;
    }
    form.dataset.tag = own.dataset.tag;
    form.elements.next.value = own.elements.next.value;
    document.title = fresh.title;
    badge?.replaceWith(fresh.querySelector(".menu-count") ?? badge);
    badge = document.querySelector(".menu-count");
    put(fresh, ["inbox-messages", "inbox-tabs", "inbox-saved", "inbox-heading", "inbox-list", "inbox-pages", "inbox-hits"]);
    news = Number(list().dataset.news);
  }
  window.staffInbox = { showPage };

  // While a button of the mouse is down, a row must not move away under it.
  let isPressed = false;
  form.addEventListener("pointerdown", () => { isPressed = true; });
  for (const event of ["pointerup", "pointercancel"]) {
    window.addEventListener(event, () => { isPressed = false; });
  }

  async function look() {
    // In a window that became narrow it isn't displayed.
    if (pane && !pane.offsetParent) return;
    const headers = document.hidden
      ? { "X-Live": "figures" }
      : { "X-Live": pane ? "pane" : "list", "If-None-Match": form.dataset.tag };
    if (pane) headers["X-Chat"] = pane.dataset.chat;
    const address = addressNow();
    const answer = await window.staffLive.ask(address, headers);
    const html = answer.status === 200 ? await answer.text() : "";
    // A search meanwhile shows something else.
    if (isPressed || address !== addressNow() || answer.status === 304) return;
    showFigures(answer.headers);
    if (!html) return;
    put(parse(html), ["inbox-tabs", "inbox-list", "inbox-pages"]);
    form.dataset.tag = answer.headers.get("ETag");
  }

  const again = window.staffLive.keepAsking(look, { everyHidden: EVERY_HIDDEN });

  // Other tabs, states and pages of the list beside a conversation, which stays open.
  pane?.addEventListener("click", (event) => {
    const link = event.target.closest(".inbox-tabs nav a, .pages a, .nothing a");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    pane.dataset.address = link.href;
    pane.dataset.tag = "";
    pane.dispatchEvent(new Event("changed"));
    again().then(() => { pane.scrollTop = 0; });
  });
})();
