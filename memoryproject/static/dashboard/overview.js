// Draws the dashboard's charts, and keeps its figures up to date while somebody looks at them.
"use strict";

(() => {
  const root = document.documentElement;
  const board = document.getElementById("board");
  const colour = (name) => getComputedStyle(root).getPropertyValue(name).trim();

  function dataset(series, kind) {
    const paint = colour(series.colour);
    const line = { borderColor: paint, borderWidth: 2, pointRadius: 2, spanGaps: true };
    const look = kind === "line" ? line : { maxBarThickness: 22, borderRadius: 2 };
    return { label: series.title, data: series.values, backgroundColor: paint, ...look };
  }

  function options(kind) {
    const text = colour("--quiet");
    const right = getComputedStyle(root).direction === "rtl";
    const stacked = kind === "bar";
    return {
      animation: false,
      maintainAspectRatio: false,
      interaction: { mode: "index", intersect: false },
      plugins: {
        legend: { position: "bottom", rtl: right, labels: { color: text, boxWidth: 10, boxHeight: 10 } },
        tooltip: { rtl: right, textDirection: right ? "rtl" : "ltr" },
      },
      scales: {
        x: { stacked, reverse: right, grid: { display: false }, ticks: { color: text, maxRotation: 0, autoSkipPadding: 12 } },
        y: { stacked, position: right ? "right" : "left", beginAtZero: true, grid: { color: colour("--line") },
          ticks: { color: text, precision: stacked ? 0 : undefined, maxTicksLimit: 6 } },
      },
    };
  }

  function draw(canvas) {
    const { labels, series } = JSON.parse(canvas.dataset.value);
    const kind = canvas.dataset.kind;
    const data = { labels, datasets: series.map((one) => dataset(one, kind)) };
    canvas.parentElement.hidden = false;
    const chart = Chart.getChart(canvas);
    if (chart) {
      Object.assign(chart, { data, options: options(kind) });
      chart.update();
    } else {
      new Chart(canvas, { type: kind, data, options: options(kind) });
    }
  }

  const drawAll = () => board.querySelectorAll("canvas").forEach(draw);

  // Only what changed is put in, so that an open table, a place in it and the focus stay.
  function replace(old, fresh) {
    if (old.innerHTML === fresh.innerHTML && old.className === fresh.className) {
      return;
    }
    const focused = old.contains(document.activeElement) && document.activeElement.getAttribute("href");
    old.className = fresh.className;
    old.innerHTML = fresh.innerHTML;
    if (focused) {
      old.querySelector(`a[href="${CSS.escape(focused)}"], a`)?.focus();
    }
  }

  function show(html) {
    const fresh = new DOMParser().parseFromString(html, "text/html");
    const names = (place) => [...place.querySelectorAll("[id]")].map((part) => part.id).join();
    if (names(board) !== names(fresh)) {
      board.replaceChildren(...fresh.body.childNodes);
      drawAll();
      return;
    }
    for (const part of fresh.querySelectorAll("[data-live]")) {
      replace(document.getElementById(part.id), part);
    }
    for (const canvas of fresh.querySelectorAll("canvas")) {
      const here = document.getElementById(canvas.id);
      if (here.dataset.value !== canvas.dataset.value) {
        here.dataset.value = canvas.dataset.value;
        draw(here);
      }
    }
  }

  async function look() {
    const headers = { "If-None-Match": board.dataset.tag };
    const answer = await window.staffLive.ask(board.dataset.address, headers);
    if (answer.status === 200) {
      show(await answer.text());
      board.dataset.tag = answer.headers.get("ETag");
    }
  }

  function begin() {
    Chart.defaults.font.family = getComputedStyle(document.body).fontFamily;
    drawAll();
    new MutationObserver(drawAll).observe(root, { attributeFilter: ["class"] });
    if (board.dataset.address) {
      window.staffLive.keepAsking(look);
    }
  }

  // The library is as large as the rest of a first visit: the figures are shown before it comes.
  function loadCharts() {
    const script = document.createElement("script");
    script.addEventListener("load", begin);
    script.src = board.dataset.charts;
    document.head.append(script);
  }

  if (board) {
    requestAnimationFrame(() => setTimeout(loadCharts));
  }
})();
