// Where nobody is logged in any more, an open page shows nothing of a person: it asks once the
// login's time is over, when somebody comes back to it, and when another tab is logged out.
"use strict";
(() => {
  const OUT = "staff-logged-out";
  const { session, user, idle } = document.body.dataset;
  const store = (name) => { try { localStorage.setItem(name, String(Date.now())); } catch { /* as without it */ } };
  if (!session) {
    // The login: other tabs look whether it is theirs, too.
    store(OUT);
    return;
  }
  const PATIENCE = 8000;
  const AGAIN = 60000;
  // Longer timers overflow.
  const LONGEST = 24 * 60 * 60 * 1000;
  // A server that has answered so lately isn't asked before a form is sent.
  const FRESH = 10000;
  let heard = performance.now();
  let isOver = false;

  /** Shows this instead of the page; ``inside``: the part of it that goes. */
  function replace(inside, shown) {
    document.title = shown.querySelector("p").firstChild.textContent.trim();
    inside.replaceChildren(shown);
  }

  // What was typed is kept by typed.js until the same person is back.
  function end() {
    if (isOver) return;
    isOver = true;
    window.dispatchEvent(new Event("staff:logged-out"));
    const shown = document.getElementById("logged-out").content.cloneNode(true);
    // A page that answers a POST can't be loaded again: the one before it can.
    const back = "posted" in document.body.dataset ? new URL(document.referrer || document.body.dataset.home, location.href) : location;
    shown.querySelector("a").href = back.pathname + back.search;
    replace(document.body, shown);
  }

  /** Ends the page where its own question was refused: logged out, no right any more, or gone. */
  function refused(status) {
    if (status === 401) {
      end();
      return;
    }
    const shown = document.createElement("main");
    shown.className = "room-content";
    shown.append(document.getElementById(status === 404 ? "gone" : "closed").content.cloneNode(true));
    replace(document.getElementById("main"), shown);
  }

  /** Asks whether this login still holds. Asking doesn't prolong it. Throws where nobody answers. */
  async function check() {
    const headers = { "X-Live": "yes", "X-Staff": user };
    const signal = AbortSignal.timeout(PATIENCE);
    const answer = await fetch(session, { method: "HEAD", headers, signal, cache: "no-store", redirect: "error" });
    heard = performance.now();
    return answer.status !== 401;
  }
  const isFresh = () => navigator.onLine && performance.now() - heard < FRESH;

  const look = () => check().then((isIn) => { if (!isIn) end(); }, () => {});
  const later = (wait) => setTimeout(() => look().then(() => { if (!isOver) later(AGAIN); }), wait);
  later(Math.min(Number(idle) * 1000 + 2000, LONGEST));

  document.addEventListener("visibilitychange", () => { if (!document.hidden) look(); });
  window.addEventListener("storage", (event) => { if (event.key === OUT) look(); });
  // A page from the browser's memory isn't seen before it is known whose it is.
  window.addEventListener("pageshow", (event) => {
    if (!event.persisted) return;
    document.documentElement.hidden = true;
    look().then(() => { document.documentElement.hidden = false; });
  });
  window.staffSession = { check, isFresh, refused };
})();
