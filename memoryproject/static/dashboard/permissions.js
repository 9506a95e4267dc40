// A search field above a long checklist of permissions. What is ticked stays ticked when hidden.
(() => {
  for (const list of document.querySelectorAll(".permission-list")) {
    const labels = [...list.querySelectorAll("label")];
    const field = document.createElement("input");
    field.type = "search";
    field.placeholder = list.dataset.find;
    field.setAttribute("aria-label", list.dataset.find);
    const none = document.createElement("p");
    none.className = "none";
    none.setAttribute("role", "status");
    const show = () => {
      const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
      let found = 0;
      for (const label of labels) {
        const text = label.textContent.toLowerCase();
        const fits = words.every((word) => text.includes(word));
        label.parentElement.hidden = !fits;
        if (fits) found += 1;
      }
      none.textContent = found ? "" : list.dataset.none;
    };
    field.addEventListener("input", show);
    // Enter would save the whole form.
    field.addEventListener("keydown", (event) => { if (event.key === "Enter") event.preventDefault(); });
    list.prepend(field, none);
  }
})();
