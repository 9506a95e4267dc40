// While a verification is under way, its progress and then what it found.
(() => {
  const EVERY = 1500;
  const refresh = async () => {
    const state = document.getElementById("chain");
    if (!state || !("open" in state.dataset)) return;
    try {
      const answer = await fetch(location.href, { headers: { "X-Requested-With": "live" } });
      if (answer.status === 401 || answer.status === 403) return location.reload();
      if (answer.ok) {
        const page = new DOMParser().parseFromString(await answer.text(), "text/html");
        const fresh = page.getElementById("chain");
        if (fresh) state.replaceWith(document.importNode(fresh, true));
      }
    } catch { /* The next one may get through. */ }
    setTimeout(refresh, EVERY);
  };
  setTimeout(refresh, EVERY);
})();
