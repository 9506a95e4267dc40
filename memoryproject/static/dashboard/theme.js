// Light or dark, before anything is painted: as chosen here, or as the system says.
(() => {
  const root = document.documentElement;
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  const chosen = () => {
    try { return localStorage.getItem("staffTheme") || "auto"; } catch { return "auto"; }
  };
  const paint = () => {
    const dark = chosen() === "dark" || (chosen() === "auto" && system.matches);
    root.classList.toggle("dark", dark);
    root.dataset.theme = dark ? "dark" : "light";
  };
  window.staffTheme = {
    chosen,
    choose(theme) {
      try { localStorage.setItem("staffTheme", theme); } catch { /* kept for this page only */ }
      paint();
    },
  };
  system.addEventListener("change", paint);
  paint();
})();
