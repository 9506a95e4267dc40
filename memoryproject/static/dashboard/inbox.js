// Chooses all conversations of a page at once.
(() => {
  const all = document.querySelector(".choose-all");
  if (!all) return;
  const boxes = [...document.querySelectorAll(".chats input[type=checkbox]")];
  all.closest("label").hidden = false;
  all.addEventListener("change", () => boxes.forEach((box) => { box.checked = all.checked; }));
  boxes.forEach((box) => box.addEventListener("change", () => {
    all.checked = boxes.every((each) => each.checked);
    all.indeterminate = !all.checked && boxes.some((each) => each.checked);
  }));
})();
