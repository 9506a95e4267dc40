// Turns pushes on in this browser: asks the person, and sends the browser's keys to the server.
"use strict";
(() => {
  const form = document.getElementById("push-form");
  const note = document.getElementById("push-note");
  if (!("serviceWorker" in navigator) || !("PushManager" in window)) return;
  document.getElementById("push-on").hidden = false;
  note.textContent = "";
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (await Notification.requestPermission() !== "granted") {
      note.textContent = form.dataset.denied;
      return;
    }
    try {
      const { pushManager } = await navigator.serviceWorker.ready;
      // It may be of another key.
      await (await pushManager.getSubscription())?.unsubscribe();
      const made = await pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: form.dataset.key });
      const { endpoint, keys } = made.toJSON();
      const name = navigator.userAgentData?.platform || navigator.platform;
      for (const [field, value] of Object.entries({ endpoint, ...keys, name })) form.elements.namedItem(field).value = value;
      // Whose pushes this browser shows: page.js ends them where another person comes.
      localStorage.setItem("staffPushes", document.body.dataset.user);
      form.submit();
    } catch {
      note.textContent = form.dataset.failed;
    }
  });
})();
