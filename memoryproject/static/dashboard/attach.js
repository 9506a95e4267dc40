// Attaches a file to the reply: chosen, dropped on the page of the conversation, or pasted. A file
// that WhatsApp doesn't take for its size is refused before it is uploaded; the server checks again.
"use strict";

(() => {
  const input = document.getElementById("takeover-file");
  const box = document.getElementById("takeover-text");
  if (!input || !box) return;
  const form = input.form;
  const shown = form.querySelector(".attached");
  const problem = form.querySelector(".attach-problem");
  const words = (name) => document.getElementById(name).content.textContent;

  /** The same units as Django's filesizeformat, in the page's language. */
  function sizeOf(bytes) {
    const [value, unit] = bytes < 1024 ** 2 ? [bytes / 1024, "kilobyte"] : [bytes / 1024 ** 2, "megabyte"];
    const style = { style: "unit", unit, unitDisplay: "short", maximumFractionDigits: 1 };
    return new Intl.NumberFormat(document.documentElement.lang, style).format(value);
  }

  function say(text) {
    problem.textContent = text;
    problem.hidden = !text;
  }

  function show() {
    const file = input.files[0];
    shown.hidden = !file;
    shown.querySelector(".attached-name").textContent = file?.name ?? "";
    shown.querySelector(".attached-size").textContent = file ? sizeOf(file.size) : "";
    shown.querySelector(".attached-sending").textContent = "";
    box.required = !file;
  }

  function check() {
    const file = input.files[0];
    if (!file) return "";
    const kind = file.type.split("/")[0];
    const most = Number(input.getAttribute(`data-most-${kind}`) ?? input.dataset.mostDocument);
    if (file.size <= most) return "";
    return words("attach-too-large").replace("{most}", sizeOf(most)).replace("{size}", sizeOf(file.size));
  }

  function chosen(note = "") {
    const refusal = check();
    if (refusal) input.value = "";
    say(refusal || note);
    show();
  }

  /** Puts files that came another way into the field, which sends them. */
  function take(files) {
    const one = new DataTransfer();
    one.items.add(files[0]);
    input.files = one.files;
    chosen(files.length > 1 ? words("attach-one") : "");
    box.focus();
  }

  input.addEventListener("change", () => { chosen(); box.focus(); });
  form.querySelector(".attach-nothing").addEventListener("click", () => {
    input.value = "";
    chosen();
    box.focus();
  });

  box.addEventListener("paste", (event) => {
    const files = [...event.clipboardData.files];
    // A copied part of a document brings a picture of itself beside its text.
    if (!files.length || event.clipboardData.types.includes("text/plain")) return;
    event.preventDefault();
    take(files);
  });

  const page = document.querySelector("main") ?? document.body;
  const hasFiles = (event) => [...event.dataTransfer.types].includes("Files");
  page.addEventListener("dragover", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    form.classList.add("dropping");
  });
  page.addEventListener("dragleave", (event) => {
    if (!page.contains(event.relatedTarget)) form.classList.remove("dropping");
  });
  page.addEventListener("drop", (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    form.classList.remove("dropping");
    if (event.dataTransfer.files.length) take([...event.dataTransfer.files]);
  });

  form.addEventListener("submit", () => {
    if (input.files[0]) shown.querySelector(".attached-sending").textContent = words("attach-sending");
  });
  // Whoever comes back by the browser's history may find the file still chosen.
  window.addEventListener("pageshow", show);
  show();
})();
