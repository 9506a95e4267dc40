// Shows the end of a conversation first, and keeps it up to date while somebody looks at it.
"use strict";

const EVERY = 3000;
const NEAR_THE_END = 60;
const timeline = document.getElementById("timeline");

function toTheEnd() {
  timeline.scrollTop = timeline.scrollHeight;
}

async function look() {
  if (document.hidden) {
    return;
  }
  const headers = { "X-Live": "yes", "If-None-Match": timeline.dataset.tag };
  const answer = await fetch(location.href, { headers, cache: "no-store", redirect: "error" });
  if (answer.status !== 200) {
    return;
  }
  const wasAtTheEnd =
    timeline.scrollHeight - timeline.scrollTop - timeline.clientHeight < NEAR_THE_END;
  timeline.innerHTML = await answer.text();
  timeline.dataset.tag = answer.headers.get("ETag");
  if (wasAtTheEnd) {
    toTheEnd();
  }
}

if (timeline) {
  const named = location.hash && document.getElementById(location.hash.slice(1));
  if (named) {
    named.scrollIntoView({ block: "center" });
  } else if (!new URLSearchParams(location.search).has("after")) {
    toTheEnd();
  }
  if (timeline.dataset.live) {
    // The next look waits for the last one, and a server that is away is asked again.
    const again = () => look().catch(() => {}).finally(() => setTimeout(again, EVERY));
    setTimeout(again, EVERY);
  }
}
