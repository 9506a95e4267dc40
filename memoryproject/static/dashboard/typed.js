// Keeps what staff type until the server has stored it: in this browser, for the same account, for
// a week. Text comes back to its field when the page is opened again: after another login, another
// page, a failed connection, another language. Logging out removes it.
"use strict";
(() => {
  const DRAFTS = "staff-drafts:";
  const TRIED = "staff-tried";
  const SAVED = "staff-saved";
  const PAUSE = 300;
  const WEEK = 7 * 24 * 60 * 60 * 1000;
  const MAX_DRAFTS = 100;
  const MAX_LENGTH = 200000;
  const FIELDS = "textarea, input[type=text], input[type=search], input[type=email], input[type=url], input[type=tel], input[type=number], input:not([type])";
  const { user } = document.body.dataset;
  const posted = "posted" in document.body.dataset;
  const forms = () => [...document.querySelectorAll("main form")];
  const notKept = "[autocomplete=off], [role=search], .access-form";
  const isKept = (form) => (form.method === "post" || form.matches(".unsent")) && !form.matches(notKept);
  /** The same form on another page has the same name: its address, its object and its fields. */
  function nameOf(form) {
    const { pathname } = new URL(form.getAttribute("action") || "", location.href);
    const fields = [...form.querySelectorAll(FIELDS)].map((field) => field.name).filter(Boolean);
    return [pathname, form.dataset.draft ?? "", ...new Set(fields)].join(" ");
  }

  // --- where drafts are; browsers may forbid it: then text is lost as without this script

  const KEY = DRAFTS + user;
  let isCleared = false;
  const read = (key = KEY) => { try { return JSON.parse(localStorage.getItem(key)) ?? {}; } catch { return {}; } };
  function write(drafts) {
    if (isCleared) return;
    const newest = Object.entries(drafts).sort(([, one], [, other]) => other.at - one.at).slice(0, MAX_DRAFTS);
    try {
      localStorage.setItem(KEY, JSON.stringify(Object.fromEntries(newest)));
    } catch { /* see above */ }
  }
  function drop(name) {
    const { [name]: _gone, ...others } = read();
    if (_gone) write(others);
  }
  // Also those of others, which nobody sees: they end, too.
  function expire() {
    for (const key of Object.keys(localStorage).filter((each) => each.startsWith(DRAFTS))) {
      const young = Object.entries(read(key)).filter(([, draft]) => draft.at > Date.now() - WEEK);
      if (young.length || key === KEY) localStorage.setItem(key, JSON.stringify(Object.fromEntries(young)));
      else localStorage.removeItem(key);
    }
  }

  // --- keeping

  /** The stamp goes with the text: it says on which stored values the text was based. */
  function typedIn(form) {
    const changed = [...form.querySelectorAll(FIELDS)].filter(
      (field) => field.name && field.value && (posted || field.value !== field.defaultValue));
    if (!changed.length) return [];
    const stamps = [...form.querySelectorAll("input[type=hidden][name=seen]")];
    return [...changed, ...stamps].map(({ name, value }) => ({ name, value }));
  }
  function keep(form, more = {}) {
    const fields = typedIn(form);
    const name = nameOf(form);
    if (!fields.length) drop(name);
    else if (JSON.stringify(fields).length <= MAX_LENGTH) write({ ...read(), [name]: { at: Date.now(), fields, ...more } });
    return fields.length > 0;
  }

  let timer = 0;
  const waiting = new Set();
  let isRestoring = false;
  function flush() {
    clearTimeout(timer);
    waiting.forEach((form) => keep(form));
    waiting.clear();
  }
  // Another tab may send a text of its own from the same form: the one of this page is kept again.
  const own = new Set();
  const ownForms = () => forms().filter((form) => own.has(nameOf(form)) && typedIn(form).length);
  function settle(form) {
    waiting.delete(form);
    own.delete(nameOf(form));
  }
  document.addEventListener("input", ({ target }) => {
    const form = target.closest?.("main form");
    if (!user || isRestoring || !form || !target.matches(FIELDS) || !isKept(form)) return;
    waiting.add(form);
    own.add(nameOf(form));
    clearTimeout(timer);
    timer = setTimeout(flush, PAUSE);
  });
  for (const event of ["pagehide", "staff:logged-out"]) {
    window.addEventListener(event, () => {
      ownForms().forEach((form) => waiting.add(form));
      own.clear();
      flush();
    });
  }
  document.addEventListener("visibilitychange", () => { if (document.hidden) flush(); });
  window.addEventListener("storage", ({ key, oldValue, newValue }) => {
    if (key !== KEY) return;
    const [before, now] = [oldValue, newValue].map((drafts) => JSON.parse(drafts ?? "{}"));
    for (const form of ownForms()) {
      const name = nameOf(form);
      const isSame = JSON.stringify(before[name]?.fields) === JSON.stringify(typedIn(form));
      // Another tab was logged out by hand, or has sent the same text.
      if (newValue === null || (isSame && before[name].tried && !now[name])) settle(form);
    }
  });

  // --- bringing back

  /** ``act``: what the note's button does; without it, it discards the draft. */
  function say(template, form, field, act) {
    form.querySelector(".draft-note")?.remove();
    const note = document.getElementById(template).content.firstElementChild.cloneNode(true);
    note.querySelector("button")?.addEventListener("click", () => {
      note.remove();
      if (act) {
        act();
        return;
      }
      drop(nameOf(form));
      for (const each of form.querySelectorAll(FIELDS)) each.value = each.defaultValue;
      field.dispatchEvent(new Event("input", { bubbles: true }));
      field.focus();
    });
    field.after(note);
  }

  /** The key of a reply whose sending failed: should it have gone out, it doesn't go out twice. */
  function tryAgain(form, key) {
    const own = form.elements.namedItem("key");
    if (!key || !own) return;
    const fresh = own.value;
    own.value = key;
    const change = () => { own.value = fresh; };
    for (const event of ["input", "change"]) form.addEventListener(event, change, { once: true });
  }

  function bringBack(form, draft) {
    const { fields, key, tried, once, refused } = draft;
    const found = fields.map(({ name, value }) => [form.querySelector(`[name="${CSS.escape(name)}"]`), value])
      .filter(([field, value]) => field && field.value !== value);
    const texts = found.map(([field]) => field).filter((field) => field.matches(FIELDS));
    if (!texts.length) {
      if (!posted) drop(nameOf(form));
      return;
    }
    // What is added next is another thing, and must not get its texts unseen.
    if (refused && !posted && location.pathname.endsWith("/add/")) {
      say("draft-refused", form, texts[0], () => bringBack(form, { ...draft, refused: false }));
      return;
    }
    form.hidden = false;
    isRestoring = true;
    for (const [field, value] of found) {
      field.value = value;
      const folded = field.closest("details");
      if (folded) folded.open = true;
      field.dispatchEvent(new Event("input", { bubbles: true }));
    }
    isRestoring = false;
    tryAgain(form, key);
    if (once) drop(nameOf(form));
    else say(tried ? "draft-unsent" : "draft-restored", form, texts[0]);
  }

  /** The form that was sent last in this tab, where the server didn't say that it is stored. */
  function unsaved() {
    const saved = document.cookie.match(/(?:^|; )staff-saved=([\w-]+)/)?.[1];
    let tried = null;
    try {
      tried = JSON.parse(sessionStorage.getItem(TRIED));
      if (user || !tried) sessionStorage.removeItem(TRIED);
    } catch { /* see above */ }
    if (!tried) return null;
    const drafts = read(DRAFTS + tried.user);
    if (tried.token !== saved) return drafts[tried.name] ? tried : null;
    sessionStorage.removeItem(TRIED);
    document.cookie = `${SAVED}=; Path=${document.body.dataset.home}; Max-Age=0; SameSite=Lax`;
    delete drafts[tried.name];
    localStorage.setItem(DRAFTS + tried.user, JSON.stringify(drafts));
    return null;
  }

  const tried = unsaved();
  if (user) {
    try { expire(); } catch { /* see above */ }
    const drafts = read();
    const here = forms().filter((form) => drafts[nameOf(form)]);
    here.forEach((form) => bringBack(form, drafts[nameOf(form)]));
    // The server answered with the form: it is known not to be sent.
    if (posted) here.forEach((form) => keep(form, { refused: true }));
    if (tried?.user === user && !here.some((form) => nameOf(form) === tried.name)) elsewhere(tried.page);
  } else if (tried) {
    elsewhere(tried.page);
  }

  function elsewhere(page) {
    const note = document.getElementById("draft-elsewhere")?.content.firstElementChild.cloneNode(true);
    if (!note) return;
    note.querySelector("a").href = page;
    document.querySelector("main")?.prepend(note);
  }

  // --- for forms that come after the page, and are sent without leaving it

  window.staffDrafts = {
    bringBack(root) {
      const drafts = user ? read() : {};
      for (const form of root.querySelectorAll("form")) if (drafts[nameOf(form)]) bringBack(form, drafts[nameOf(form)]);
    },
    stored(form) {
      settle(form);
      drop(nameOf(form));
      try { sessionStorage.removeItem(TRIED); } catch { /* see above */ }
    },
    unsent: (form) => say("draft-offline", form, form.querySelector(FIELDS) ?? form.lastElementChild),
  };

  // --- sending: only to a server that answers, and for whom is logged in

  const checking = new WeakSet();
  const passing = new WeakSet();
  function send(form) {
    passing.delete(form);
    const token = [...crypto.getRandomValues(new Uint32Array(4))].map((part) => part.toString(16)).join("-");
    let own = form.elements.namedItem("draft_token");
    if (!own) {
      own = document.createElement("input");
      Object.assign(own, { type: "hidden", name: "draft_token" });
      form.append(own);
    }
    own.value = token;
    const name = nameOf(form);
    write({ ...read(), [name]: { ...read()[name], tried: true, key: form.elements.namedItem("key")?.value } });
    try { sessionStorage.setItem(TRIED, JSON.stringify({ token, name, user, page: backTo() })); } catch { /* see above */ }
  }
  const backTo = () => (posted ? new URL(document.referrer || document.body.dataset.home, location.href) : location).href.split("#")[0];

  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.matches(".language-switch")) {
      for (const each of forms()) if (isKept(each) || typedIn(each).length) keep(each, isKept(each) ? {} : { once: true });
    }
    if (form.id === "logout-form") {
      waiting.clear();
      own.clear();
      sessionStorage.removeItem(TRIED);
      localStorage.removeItem(KEY);
      isCleared = true;
    }
    // The second click of a double one is not sent: what the first one sent has its own token.
    if (!user || form.dataset.sent || !form.matches("main form") || !isKept(form)) return;
    settle(form);
    if (!passing.has(form) && !keep(form)) return;
    if (passing.has(form) || window.staffSession.isFresh()) {
      send(form);
      return;
    }
    event.preventDefault();
    event.stopImmediatePropagation();
    if (checking.has(form)) return;
    checking.add(form);
    const { submitter } = event;
    window.staffSession.check().then((isIn) => {
      checking.delete(form);
      if (!isIn) {
        // The way to the login, and back.
        location.assign(backTo());
        return;
      }
      passing.add(form);
      form.requestSubmit(submitter);
    }, () => {
      checking.delete(form);
      say("draft-offline", form, form.querySelector(FIELDS));
    });
  }, true);
})();
