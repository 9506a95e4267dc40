// The memories to review, by keyboard: j and k move, x ticks, a approves, r rejects, e corrects.
(() => {
  const bulk = document.getElementById("bulk");
  const cards = [...document.querySelectorAll("article.waiting")];
  if (!bulk || !cards.length) return;

  const ticks = cards.map((card) => card.querySelector(".tick"));
  const all = document.getElementById("tick-all");
  const keys = document.querySelector("dialog.keys");
  const mark = () => {
    const ticked = ticks.filter((tick) => tick.checked).length;
    all.checked = ticked === ticks.length;
    all.indeterminate = ticked > 0 && !all.checked;
  };
  all.closest("label").hidden = false;
  all.addEventListener("change", () => ticks.forEach((tick) => { tick.checked = all.checked; }));
  ticks.forEach((tick) => tick.addEventListener("change", mark));
  const shown = document.querySelector(".show-keys");
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
    const form = some ? bulk : cards[place].querySelector("form");
    form.requestSubmit(form.querySelector(`[name="decision"][value="${decision}"]`));
  }

  const actions = {
    j: () => go(here() + 1),
    k: () => go(here() - 1),
    x: () => { if (here() >= 0) { ticks[here()].checked = !ticks[here()].checked; mark(); } },
    a: () => decide("approve"),
    r: () => decide("reject"),
    e: () => {
      const folded = cards[here()]?.querySelector("details");
      if (!folded) return;
      folded.open = true;
      folded.querySelector("textarea").focus();
    },
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
