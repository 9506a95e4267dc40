// Searches while somebody types in the inbox, and works through its list by the keyboard.
"use strict";

(() => {
  const PAUSE = 300;
  const form = document.querySelector("form.inbox");
  const search = document.querySelector("form.inbox-search");
  if (!form || !search) return;
  const field = search.querySelector("input[name=q]");

  // --- search as you type

  // The list beside a conversation is the one from which it was opened.
  const keep = () => window.staffWide?.keep(location.search);
  document.addEventListener("DOMContentLoaded", keep);
  document.addEventListener("visibilitychange", () => { if (!document.hidden) keep(); });

  let typed = 0;
  let asked = null;

  function address() {
    const filters = new FormData(search);
    const given = [...filters].filter(([, value]) => value !== "");
    return `${location.pathname}?${new URLSearchParams(given)}`;
  }

  async function find() {
    const wanted = address();
    asked?.abort();
    asked = new AbortController();
    const answer = await fetch(wanted, { signal: asked.signal, redirect: "error" });
    if (!answer.ok) return;
    const html = await answer.text();
    history.replaceState(null, "", wanted);
    keep();
    window.staffInbox.showPage(html);
  }

  field.addEventListener("input", (event) => {
    clearTimeout(typed);
    if (!event.isComposing) typed = setTimeout(() => find().catch(() => {}), PAUSE);
  });
  search.addEventListener("submit", () => clearTimeout(typed));

  // --- keys

  const links = () => [...form.querySelectorAll(".chat-who a")];
  const rowOf = (element) => element?.closest?.(".chat") ?? null;
  const here = () => links().findIndex((link) => rowOf(link) === rowOf(document.activeElement));

  function go(step) {
    const all = links();
    const from = here();
    const to = from < 0 ? 0 : Math.min(Math.max(from + step, 0), all.length - 1);
    all[to]?.focus();
    rowOf(all[to])?.scrollIntoView({ block: "nearest" });
  }

  // The ticked conversations, or else the one in which the focus is.
  function chosen() {
    const ticked = [...form.querySelectorAll(".chats input:checked")].map((box) => box.value);
    const row = rowOf(document.activeElement);
    return ticked.length || !row ? ticked : [row.dataset.chat];
  }

  async function act(what, chats = chosen()) {
    if (!chats.length) return;
    const place = Math.max(here(), 0);
    const data = new FormData(form);
    data.delete("_selected_action");
    for (const chat of chats) data.append("_selected_action", chat);
    data.set("do", what);
    form.querySelectorAll(".chats input:checked").forEach((box) => { box.checked = false; });
    // A button of the form is called "action", too.
    const answer = await fetch(form.getAttribute("action"), { method: "POST", body: data });
    window.staffInbox.showPage(await answer.text());
    // The row may be gone from the list: the next one is in its place.
    if (here() < 0) links()[Math.min(place, links().length - 1)]?.focus();
  }

  const reviews = form.querySelector("select[name=do]") !== null;
  const help = document.getElementById("inbox-shortcuts");
  const times = document.getElementById("inbox-snooze");
  const opener = document.querySelector(".keys-help");
  opener.hidden = false;
  opener.addEventListener("click", () => help.showModal());

  let snoozed = [];
  let before = null;
  function snooze() {
    snoozed = chosen();
    before = document.activeElement;
    if (snoozed.length) times.showModal();
  }
  times?.addEventListener("close", () => {
    before?.focus();
    if (times.returnValue) act(times.returnValue, snoozed).catch(() => location.reload());
    times.returnValue = "";
  });

  const change = (what) => () => act(what).catch(() => location.reload());
  const KEYS = {
    j: () => go(1),
    k: () => go(-1),
    f: () => { field.focus(); field.select(); },
    "?": () => help.showModal(),
    ...(reviews && { e: change("reviewed"), a: change("assign:me"), s: snooze }),
  };
  const ARROWS = { ArrowDown: () => go(1), ArrowUp: () => go(-1) };
  const PLACES = { KeyJ: "j", KeyK: "k", KeyE: "e", KeyA: "a", KeyS: "s", KeyF: "f" };

  function actOf(event) {
    if (ARROWS[event.key]) {
      const isFree = event.target === document.body || rowOf(event.target);
      return isFree ? ARROWS[event.key] : undefined;
    }
    // Where letters aren't Latin, as on a Hebrew keyboard, the place of the key counts.
    return KEYS[event.key] ?? (event.key > "~" ? KEYS[PLACES[event.code]] : undefined);
  }

  document.addEventListener("keydown", (event) => {
    const isTyping = event.target.closest?.("input:not([type=checkbox]), textarea, select, dialog[open], [contenteditable]");
    if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
    const chosenAct = actOf(event);
    if (!chosenAct) return;
    event.preventDefault();
    chosenAct();
  });
})();
