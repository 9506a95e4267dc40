// Shows how long ago something was, as "3 min". The whole date stays in the element's title.
"use strict";

window.staffTimes = (() => {
  const MINUTE = 60;
  const HOUR = 60 * MINUTE;
  const DAY = 24 * HOUR;
  const WEEK = 7 * DAY;
  const language = document.documentElement.lang;
  const now = new Intl.RelativeTimeFormat(language, { numeric: "auto" }).format(0, "second");

  function amount(number, unit) {
    const form = { style: "unit", unit, unitDisplay: "short" };
    return new Intl.NumberFormat(language, form).format(Math.floor(number));
  }

  // A clock that is behind the server's sees times to come: they are now, too.
  function since(time) {
    const seconds = (Date.now() - Date.parse(time.dateTime)) / 1000;
    if (seconds < MINUTE) return now;
    if (seconds < HOUR) return amount(seconds / MINUTE, "minute");
    if (seconds < DAY) return amount(seconds / HOUR, "hour");
    if (seconds < WEEK) return amount(seconds / DAY, "day");
    return time.dataset.day;
  }

  function show(place) {
    for (const time of place.querySelectorAll("time[data-day]")) {
      const text = since(time);
      if (time.textContent !== text) time.textContent = text;
    }
  }

  show(document);
  setInterval(() => show(document), MINUTE * 1000 / 4);
  return { show };
})();
