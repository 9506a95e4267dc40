// Keeps a page up to date: asks at once when the server says by a stream that something changed,
// and every few seconds where there is no stream. A page has one stream, whatever asks.
"use strict";

(() => {
  const ADDRESS = "/admin/live/";
  // With a stream: at most and at least so often.
  const SOON = 1000;
  const SELDOM = 20000;
  // A server that takes long to answer is asked more seldom.
  const PATIENCE = 10;
  // A stream that ended is opened again; one that couldn't be had, ever later. Not by all at once.
  const AGAIN = 4000;
  const LATER = 30000;
  const LATEST = 300000;

  const asking = new Set();
  let stream = null;
  // Since it said something: a proxy may hold back what it sends.
  let isTold = false;
  let failures = 0;
  let timer = 0;

  function close() {
    clearTimeout(timer);
    stream?.close();
    stream = null;
    isTold = false;
  }

  function open() {
    clearTimeout(timer);
    // A browser opens few connections to a server: none for a page that nobody looks at.
    if (stream || document.hidden || !asking.size) return;
    stream = new EventSource(ADDRESS);
    stream.onmessage = () => {
      isTold = true;
      failures = 0;
      asking.forEach((each) => each.news());
    };
    stream.onerror = () => {
      const wait = isTold ? AGAIN : Math.min(LATER * 2 ** failures++, LATEST);
      close();
      timer = setTimeout(open, wait * (0.5 + Math.random()));
      asking.forEach((each) => each.plan());
    };
  }

  // Calls `look`, which returns a promise, again and again until `end` is called. `isToldOf`: the
  // stream tells of what it looks for.
  function keepAsking(look, { every, everyHidden = every, isToldOf = true }) {
    let next = 0;
    let began = performance.now();
    let took = 0;
    let looking = 0;
    let isDue = false;
    let isOver = false;

    function rest() {
      if (document.hidden) return everyHidden;
      if (!isTold || !isToldOf) return every;
      return isDue ? SOON : SELDOM;
    }

    function plan() {
      clearTimeout(next);
      if (isOver || looking) return;
      const wait = Math.max(rest(), PATIENCE * took) - (performance.now() - began);
      next = setTimeout(again, Math.max(wait, 0));
    }

    async function again() {
      isDue = false;
      looking++;
      clearTimeout(next);
      const start = performance.now();
      await look().catch(() => {});
      looking--;
      began = performance.now();
      took = began - start;
      plan();
    }

    function news() {
      isDue = true;
      plan();
    }

    function end() {
      isOver = true;
      clearTimeout(next);
      asking.delete(self);
      if (!asking.size) close();
    }

    const self = { again, end, news, plan };
    document.addEventListener("visibilitychange", () => {
      if (isOver) return;
      if (document.hidden) plan();
      else again();
    });
    if (isToldOf) asking.add(self);
    plan();
    open();
    return self;
  }

  document.addEventListener("visibilitychange", () => { if (document.hidden) close(); else open(); });
  window.addEventListener("pagehide", close);
  window.addEventListener("pageshow", open);
  window.staffLive = { keepAsking };
})();
