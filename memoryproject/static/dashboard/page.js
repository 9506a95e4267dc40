// What every staff page has: the switch of colours, the menu on small screens, fields for files.
(() => {
  // The style sheets that came within the page are kept for the next ones: see static_files.py.
  const MOST_KEPT = 40;
  addEventListener("load", async () => {
    const kept = (document.cookie.match(/(?:^|; )styles=([^;]*)/)?.[1] ?? "").split(".").filter(Boolean);
    for (const { dataset } of document.querySelectorAll("style[data-version]")) {
      if (!(await fetch(`${dataset.address}?v=${dataset.version}`)).ok) return;
      kept.push(dataset.version);
    }
    const all = [...new Set(kept)].slice(-MOST_KEPT).join(".");
    const secure = location.protocol === "https:" ? "; secure" : "";
    document.cookie = `styles=${all}; path=${document.body.dataset.home}; max-age=31536000; samesite=lax${secure}`;
  });

  const buttons = [...document.querySelectorAll("[data-theme-choice]")];
  const mark = () => buttons.forEach((button) =>
    button.setAttribute("aria-pressed", String(button.dataset.themeChoice === window.staffTheme.chosen())));
  for (const button of buttons) {
    button.addEventListener("click", () => { window.staffTheme.choose(button.dataset.themeChoice); mark(); });
  }
  document.querySelectorAll(".theme-switch").forEach((group) => { group.hidden = false; });
  mark();

  // Without this script the menu opens by its anchor, too: see admin.css, ":target".
  const close = document.querySelector(".menu-close");
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && location.hash === "#nav-sidebar") close?.click();
  });

  // What was just done can be taken back for ten seconds, or as long as somebody is at the button.
  const UNDO = 10000;
  const fade = (element) => setTimeout(() => {
    if (element.matches(":hover, :focus-within")) fade(element);
    else element.remove();
  }, UNDO);

  // What a part of the page says of what was done, where the page isn't loaded anew.
  function say(items) {
    let place = document.getElementById("toasts");
    if (!place) {
      place = document.createElement("div");
      place.id = "toasts";
      place.setAttribute("role", "status");
      place.innerHTML = '<ul class="messagelist"></ul>';
      document.body.append(place);
    }
    place.firstChild.replaceChildren(...items);
    items.forEach(fade);
  }
  window.staffNotes = { say };

  function count() {
    for (const button of document.querySelectorAll(".undo:not([data-counts])")) {
      button.dataset.counts = "";
      fade(button);
    }
  }
  count();
  new MutationObserver(count).observe(document.body, { childList: true, subtree: true });

  // A double click does a thing once: the second one would leave nothing to be taken back.
  const sent = new WeakMap();
  document.addEventListener("submit", (event) => {
    if (event.defaultPrevented || event.target.method !== "post") return;
    if (event.timeStamp - (sent.get(event.target) ?? -Infinity) < 1000) event.preventDefault();
    else sent.set(event.target, event.timeStamp);
  });

  // Unfold's script writes a file's name into a text field of its own, which our forms don't have.
  document.querySelectorAll("input[type=file]").forEach((input) => { input.hasChangeListener = true; });

  // A filter's panel goes when something else is clicked or Escape is pressed.
  for (const panel of document.querySelectorAll("details.filters, details.menu")) {
    document.addEventListener("click", (event) => { if (!panel.contains(event.target)) panel.open = false; });
    panel.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && panel.open) { panel.open = false; panel.querySelector("summary").focus(); }
    });
  }

  // Windows with room for it show the list of the inbox beside a conversation: the server learns
  // from this cookie that there is room, and which list was open last.
  const room = window.matchMedia("(min-width: 1280px)");
  const cookie = (value, age) => {
    const safe = location.protocol === "https:" ? "; Secure" : "";
    document.cookie = `inbox-pane=${value}; Path=${document.body.dataset.home}; SameSite=Lax${age}${safe}`;
  };
  const keep = (query) => { if (room.matches) cookie(encodeURIComponent(query.replace(/^\?/, "")), ""); };
  const check = () => {
    if (!room.matches) cookie("", "; Max-Age=0");
    else if (!/(^|; )inbox-pane=/.test(document.cookie)) keep("");
  };
  window.staffWide = { keep };
  room.addEventListener("change", check);
  check();

  // As an app, the pages show pushes, and say so where there is no connection.
  if (!("serviceWorker" in navigator)) return;
  const app = document.querySelector('link[rel="manifest"]').dataset.worker;
  const registered = navigator.serviceWorker.register(app, { scope: document.body.dataset.home }).catch(() => null);
  // Who logs out, or finds the browser of another person, gets none of that person's pushes.
  const owner = () => { try { return localStorage.getItem("staffPushes"); } catch { return null; } };
  const silence = async () => {
    const subscription = await (await registered)?.pushManager?.getSubscription();
    await subscription?.unsubscribe();
    localStorage.removeItem("staffPushes");
  };
  const { user } = document.body.dataset;
  if (owner() && user && owner() !== user) silence().catch(() => {});
  document.getElementById("logout-form")?.addEventListener("submit", (event) => {
    if (!owner()) return;
    event.preventDefault();
    // A push service that doesn't answer keeps nobody logged in.
    Promise.race([silence(), new Promise((done) => { setTimeout(done, 3000); })]).catch(() => {}).finally(() => event.target.submit());
  });
})();
