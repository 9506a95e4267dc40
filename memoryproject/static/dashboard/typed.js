// Text that was typed stays in its field when the language is switched. A page that answers a POST
// can't be loaded again: where it is left without sending, its text comes to the page that follows,
// if that has the same form.
"use strict";
(() => {
  const KEY = "staff-typed";
  const FIELDS = "textarea, input[type=text], input[type=search], input[type=email], input[type=url], input:not([type])";
  const posted = "posted" in document.body.dataset;
  const action = (form) => new URL(form.getAttribute("action") || "", location.href).pathname;
  const forms = () => [...document.querySelectorAll("main form")];

  /** The stamp goes with the text: it says on which stored values the text was based. */
  const typedIn = (form) => {
    const changed = [...form.querySelectorAll(FIELDS)].filter(
      (field) => field.name && field.value && (posted || field.value !== field.defaultValue));
    if (!changed.length) return [];
    const stamps = [...form.querySelectorAll("input[type=hidden][name=seen]")];
    return [...changed, ...stamps].map(({ name, value }) => ({ form: action(form), name, value }));
  };
  // Browsers may forbid pages to keep anything: then the text is lost as without this script.
  const keep = () => {
    try {
      const typed = forms().flatMap(typedIn);
      if (typed.length) sessionStorage.setItem(KEY, JSON.stringify(typed));
    } catch { /* see above */ }
  };
  const kept = () => {
    try {
      const typed = sessionStorage.getItem(KEY);
      sessionStorage.removeItem(KEY);
      return JSON.parse(typed) ?? [];
    } catch { return []; }
  };

  for (const { form, name, value } of kept()) {
    const field = forms().filter((each) => action(each) === form)
      .map((each) => each.querySelector(`[name="${CSS.escape(name)}"]`)).find(Boolean);
    if (!field || field.value === value) continue;
    field.value = value;
    const folded = field.closest("details");
    if (folded) folded.open = true;
    field.form.hidden = false;
    field.dispatchEvent(new Event("input", { bubbles: true }));
  }

  let sent = false;
  document.addEventListener("submit", (event) => {
    if (event.target.matches(".language-switch")) keep();
    sent = true;
  });
  if (posted) window.addEventListener("pagehide", () => { if (!sent) keep(); });
})();
