// The list of the inbox beside a conversation: it stays where it was from one conversation to the
// next, and a keyboard goes through it. Loaded right after the list, before anything is painted.
"use strict";

(() => {
  const PLACE = "inbox-pane";
  const pane = document.querySelector(".inbox-pane");
  if (!pane) return;

  const links = () => [...pane.querySelectorAll(".chat-who a")];
  const rowOf = (element) => element?.closest?.(".chat") ?? null;
  const current = () => pane.querySelector(".chat.here");

  // --- where it was

  const before = JSON.parse(sessionStorage.getItem(PLACE) ?? "{}");
  const restore = () => {
    pane.scrollTop = before.top ?? 0;
    current()?.scrollIntoView({ block: "nearest" });
  };
  restore();
  // Before its style is there, the list has no height to scroll in.
  window.addEventListener("load", () => { if (pane.scrollTop === 0) restore(); });
  if (before.focused && !location.hash) current()?.querySelector(".chat-who a").focus({ preventScroll: true });

  window.addEventListener("pagehide", () => {
    const focused = rowOf(document.activeElement) !== null && pane.contains(document.activeElement);
    sessionStorage.setItem(PLACE, JSON.stringify({ top: pane.scrollTop, focused }));
  });

  // --- the filters that the next conversation's list keeps: those of the window that is used now

  const keep = () => window.staffWide?.keep(new URL(pane.dataset.address, location.href).search);
  pane.addEventListener("changed", keep);
  document.addEventListener("DOMContentLoaded", keep);
  document.addEventListener("visibilitychange", () => { if (!document.hidden) keep(); });

  // --- keys

  function go(step) {
    const all = links();
    const from = all.findIndex((link) => rowOf(link) === rowOf(document.activeElement));
    const to = from < 0 ? 0 : Math.min(Math.max(from + step, 0), all.length - 1);
    all[to]?.focus({ preventScroll: true });
    rowOf(all[to])?.scrollIntoView({ block: "nearest" });
  }

  // From any place on the page, the neighbour of the conversation that is open.
  function open(step) {
    const all = links();
    const from = all.findIndex((link) => rowOf(link) === current());
    const to = all[from < 0 ? 0 : from + step];
    to?.focus();
    to?.click();
  }

  const STEPS = { j: 1, k: -1, KeyJ: 1, KeyK: -1, ArrowDown: 1, ArrowUp: -1 };
  // Where letters aren't Latin, as on a Hebrew keyboard, the place of the key counts.
  const stepOf = (event) => STEPS[event.key.toLowerCase()] ?? STEPS[event.key] ?? (event.key > "~" ? STEPS[event.code] : undefined);

  // Before the conversation's own keys: "j" in this list is for the list.
  document.addEventListener("keydown", (event) => {
    const isTyping = event.target.closest?.("input, textarea, select, dialog[open], [contenteditable]");
    const step = stepOf(event);
    if (isTyping || !step || !pane.offsetParent || event.ctrlKey || event.metaKey || event.altKey) return;
    const isArrow = event.key.startsWith("Arrow");
    if (event.shiftKey && !isArrow) open(step);
    else if (!event.shiftKey && rowOf(event.target)) go(step);
    else return;
    event.preventDefault();
    event.stopImmediatePropagation();
  }, true);
})();
