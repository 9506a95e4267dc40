// The set-up's pages: what the browser knows is filled in, and what is awaited is shown as it comes.
"use strict";

(() => {
  const EVERY = 1500;

  const refresh = async () => {
    const state = document.getElementById("live");
    if (!state || !("open" in state.dataset)) return;
    try {
      const answer = await fetch(location.href, { headers: { "X-Requested-With": "live" }, cache: "no-store" });
      if (answer.status === 401 || answer.status === 403) return location.reload();
      if (answer.ok) {
        const page = new DOMParser().parseFromString(await answer.text(), "text/html");
        const fresh = page.getElementById("live");
        if (fresh && fresh.innerHTML !== state.innerHTML) state.replaceWith(document.importNode(fresh, true));
      }
    } catch { /* The next one may get through. */ }
    setTimeout(refresh, EVERY);
  };
  setTimeout(refresh, EVERY);

  const zone = document.querySelector("input[list=zones]");
  if (zone && !zone.value && !zone.disabled) zone.value = Intl.DateTimeFormat().resolvedOptions().timeZone || "";

  const country = document.querySelector("select[name=country]");
  if (country) {
    const names = new Intl.DisplayNames([document.documentElement.lang], { type: "region" });
    const [first, ...others] = country.options;
    for (const option of others) option.textContent = `${names.of(option.value)} ${option.textContent.split(" ")[1]}`;
    others.sort((one, other) => one.textContent.localeCompare(other.textContent));
    const chosen = country.value || new Intl.Locale(navigator.language).region || "";
    country.replaceChildren(first, ...others);
    if (others.some((option) => option.value === chosen)) country.value = chosen;
  }

  const preset = document.querySelector("select[name=preset]");
  if (preset) {
    const rows = [...document.querySelectorAll("[data-preset]")];
    const address = document.querySelector("input[name=OPENAI_BASE_URL]");
    const model = document.querySelector("input[name=OPENAI_MODEL]");
    rows[0].parentElement.hidden = true;
    preset.addEventListener("change", () => {
      const row = rows.find((each) => each.dataset.preset === preset.value);
      if (row && !address.disabled) address.value = row.dataset.address;
      if (row) model.placeholder = row.dataset.model;
    });
    if (!preset.value) preset.value = rows.find((each) => each.dataset.address === address.value)?.dataset.preset ?? "";
  }
})();
