// What is to be decided, by keyboard: j and k move, x ticks, a approves, r rejects, e corrects, u undoes.
(() => {
  const bulk = document.getElementById("bulk");
  const cards = [...document.querySelectorAll("article.waiting")];
  const shown = document.querySelector(".show-keys");
  if (!shown || !cards.length) return;

  const tickOf = (card) => card?.querySelector(".tick");
  const ticks = cards.map(tickOf).filter(Boolean);
  const all = document.getElementById("tick-all");
  const keys = document.querySelector("dialog.keys");
  const mark = () => {
    if (!all) return;
    const ticked = ticks.filter((tick) => tick.checked).length;
    all.checked = ticked === ticks.length;
    all.indeterminate = ticked > 0 && !all.checked;
  };
  if (all) all.closest("label").hidden = false;
  all?.addEventListener("change", () => ticks.forEach((tick) => { tick.checked = all.checked; }));
  ticks.forEach((tick) => tick.addEventListener("change", mark));
  shown.hidden = false;
  shown.addEventListener("click", () => keys.showModal());
  mark();

  // The page comes anew after each decision: the next memory stands where the last one was.
  const PLACE = "waiting-place";
  const here = () => cards.indexOf(document.activeElement.closest("article.waiting"));
  const go = (place) => cards[Math.min(Math.max(place, 0), cards.length - 1)].focus();
  const kept = sessionStorage.getItem(PLACE);
  sessionStorage.removeItem(PLACE);
  if (kept !== null && !document.querySelector(".waiting details[open]")) go(Number(kept));

  function decide(decision) {
    const place = here();
    const some = ticks.some((tick) => tick.checked);
    if (!some && place < 0) return;
    sessionStorage.setItem(PLACE, String(Math.max(place, 0)));
    const button = some ? bulk.querySelector(`[value="${decision}"]`) : cards[place].querySelector(`[data-key="${decision[0]}"]`);
    button?.click();
  }

  const actions = {
    j: () => go(here() + 1),
    k: () => go(here() - 1),
    x: () => {
      const tick = tickOf(cards[here()]);
      if (tick) { tick.checked = !tick.checked; mark(); }
    },
    a: () => decide("approve"),
    r: () => decide("reject"),
    e: () => {
      const folded = cards[here()]?.querySelector("details");
      if (!folded) cards[here()]?.querySelector("[data-key=e]")?.click();
      if (!folded) return;
      folded.open = true;
      folded.querySelector("textarea").focus();
    },
    u: () => document.querySelector(".undo")?.click(),
    "?": () => keys.showModal(),
  };

  // Never while somebody types or chooses, nor in the place of the browser's own shortcuts.
  const typing = (element) =>
    element.isContentEditable || element.matches('textarea, select, input:not([type="checkbox"])');
  // Where the keyboard writes another script, the place of the key counts.
  const pressed = (event) =>
    /^[!-~]$/.test(event.key) || !/^Key[A-Z]$/.test(event.code) ? event.key : event.code[3].toLowerCase();
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || keys.open) return;
    if (event.key === "Escape" && event.target.matches(".waiting textarea")) go(here());
    if (typing(event.target) || !Object.hasOwn(actions, pressed(event))) return;
    event.preventDefault();
    actions[pressed(event)]();
  });
})();
