// Keeps an open page up to date: it asks every two seconds while somebody looks at it.
"use strict";

(() => {
  const EVERY = 2000;
  // A server that takes long to answer is asked more seldom, one that fails ever more seldom.
  const PATIENCE = 10;
  const LATEST = 60000;

  const asking = new Set();

  // Returns the answer of 200, 204 or 304, and throws for any other. Logged out, no right any more,
  // or erased: what may not be read isn't left standing.
  async function ask(address, headers) {
    const options = { headers: { "X-Live": "yes", ...headers }, cache: "no-store", redirect: "error" };
    const answer = await fetch(address, options);
    if (answer.ok || answer.status === 304) return answer;
    if ([401, 403, 404].includes(answer.status)) {
      asking.forEach((end) => end());
      window.staffSession.refused(answer.status);
    }
    throw new Error(`${address}: ${answer.status}`);
  }

  // Calls `look`, which returns a promise, again and again until the page is refused. A page in the
  // background asks for nothing unless `everyHidden` says how often.
  function keepAsking(look, { every = EVERY, everyHidden = 0 } = {}) {
    let next = 0;
    let looking = 0;
    let failures = 0;
    let isOver = false;

    function plan(took) {
      clearTimeout(next);
      const rest = document.hidden ? everyHidden : every;
      if (isOver || looking || !rest) return;
      next = setTimeout(again, Math.max(Math.min(rest * 2 ** failures, LATEST), PATIENCE * took));
    }

    async function again() {
      clearTimeout(next);
      looking++;
      const start = performance.now();
      failures = await look().then(() => 0, () => failures + 1);
      looking--;
      plan(performance.now() - start);
    }

    asking.add(() => { isOver = true; clearTimeout(next); });
    document.addEventListener("visibilitychange", () => {
      if (isOver) return;
      if (document.hidden) plan(0);
      else again();
    });
    plan(0);
    return again;
  }

  window.staffLive = { ask, keepAsking };
})();
