// The app's worker: shows pushes, and a page of its own where the server can't be reached.
// It stores no page: nothing of a conversation stays on the device, whoever was logged in.
"use strict";
{% load static %}const OFFLINE = "{% filter escapejs %}{% include "admin/offline.html" %}{% endfilter %}";
const ICON = "{% static 'dashboard/app-192.png' %}";

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

self.addEventListener("fetch", (event) => {
  // A form that can't be sent stays in the browser's own hands, which can send it again.
  if (event.request.mode !== "navigate" || event.request.method !== "GET") return;
  const headers = { "Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-store" };
  event.respondWith(fetch(event.request).catch(() => new Response(OFFLINE, { status: 503, headers })));
});

self.addEventListener("push", (event) => {
  let told = {};
  try { told = event.data.json(); } catch { /* shown without words: browsers want each push shown */ }
  const { title = "WhatsApp memory", body = "", url = "", tag = "" } = told;
  event.waitUntil(self.registration.showNotification(title, { body, tag, icon: ICON, badge: ICON, data: { url } }));
});

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  const { pathname, search, hash } = new URL(event.notification.data?.url || "", self.registration.scope);
  const address = location.origin + pathname + search + hash;
  event.waitUntil((async () => {
    const open = await self.clients.matchAll({ type: "window" });
    // A page that is open elsewhere may hold a text that isn't sent: it stays as it is.
    const there = open.find((each) => each.url.split("#")[0] === address.split("#")[0]);
    return there ? there.focus() : self.clients.openWindow(address);
  })());
});
