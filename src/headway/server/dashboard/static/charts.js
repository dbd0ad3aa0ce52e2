// Small charts of our own. Every one says in words what it shows.

import { h, s } from "./dom.js";
import { hour, percent, promise, span } from "./words.js";

// On a phone a chart has fewer units across, so that its words stay readable.
function wide() {
  return window.innerWidth < 700 ? 430 : 960;
}

// How much of its promise the oldest job of each lane has used up, over time.
export function pressureChart(lanes, from_ms, to_ms) {
  const across = wide();
  const height = 190;
  const left = 44;
  const bottom = height - 22;
  const most = Math.max(1.25, ...lanes.flatMap((lane) => lane.points.map((p) => p[3] / lane.slo_ms)));
  // How late a promise is beyond that matters less than when it broke.
  const top = Math.min(3, most);
  const x = (at) => left + ((at - from_ms) / Math.max(1, to_ms - from_ms)) * (across - left - 8);
  const y = (share) => bottom - (Math.min(share, top) / top) * (bottom - 12);
  const lines = niceShares(top).map((share) => [
    s("line", { class: share === 1 ? "promise" : "grid", x1: left, x2: across - 8, y1: y(share), y2: y(share) }),
    s("text", { class: share === 1 ? "end strong" : "end", x: left - 6, y: y(share) + 4 }, percent(share)),
  ]);
  const curves = lanes.map((lane, place) => {
    const points = lane.points.filter((p) => p[0] >= from_ms);
    const path = points.map((p, i) => `${i ? "L" : "M"}${x(p[0]).toFixed(1)} ${y(p[3] / lane.slo_ms).toFixed(1)}`).join("");
    return s("path", { class: `curve lane${place % 8}`, d: path || "M0 0" });
  });
  const worst = lanes.map((lane) => `${lane.queue} ${percent(Math.max(0, ...lane.points.map((p) => p[3] / lane.slo_ms)))}`);
  return s("svg", { class: "chart", viewBox: `0 0 ${across} ${height}`, role: "img",
    "aria-label": `Longest wait as a share of the promise, at most: ${worst.join(", ")}` },
    lines, timeAxis(from_ms, to_ms, x, bottom), curves);
}

function niceShares(top) {
  const step = top <= 2 ? 0.5 : 1;
  const found = [0, 1];
  for (let share = step; share <= top; share += step) if (!found.includes(share)) found.push(share);
  return found;
}

function timeAxis(from_ms, to_ms, x, bottom) {
  const across = wide();
  const parts = [];
  const steps = [60_000, 300_000, 600_000, 3_600_000, 10_800_000, 14_400_000];
  const step = steps.find((one) => (to_ms - from_ms) / one <= across / 110) ?? 14_400_000;
  for (let at = Math.ceil(from_ms / step) * step; at <= to_ms; at += step) {
    const anchor = x(at) > across - 40 ? "end" : "middle";
    parts.push(s("text", { class: anchor, x: x(at), y: bottom + 16 }, hour(at)));
  }
  return parts;
}

export function legend(lanes) {
  return h("p", { class: "legend" }, lanes.map((lane, place) =>
    h("span", {}, h("i", { class: `lane${place % 8}` }), `${lane.queue} · ${promise(lane.slo_ms)}`)));
}

// One row a lane, one cell a step: were the jobs that started then in time?
export function keptChart(lanes, from_ms, to_ms, step_ms) {
  const across = wide();
  const row = 26;
  const left = across < 700 ? 130 : 190;
  const height = lanes.length * row + 22;
  const cells = Math.max(1, Math.round((to_ms - from_ms) / step_ms));
  const width = (across - left - 8) / cells;
  const x = (at) => left + ((at - from_ms) / Math.max(1, to_ms - from_ms)) * (across - left - 8);
  const rows = lanes.map((lane, place) => {
    const y = place * row;
    const points = lane.points.filter((p) => p[0] >= from_ms);
    return [
      s("text", { class: "strong", x: 0, y: y + 16 }, cut(lane.queue, across < 700 ? 12 : 20)),
      s("text", { class: "end", x: left - 10, y: y + 16 }, promise(lane.slo_ms)),
      s("rect", { class: "quiet", x: left, y: y + 4, width: across - left - 8, height: row - 9, rx: 3 }),
      points.map(([at, starts, kept, oldest]) => {
        const style = cellStyle(starts, kept, oldest > lane.slo_ms);
        return style ? s("rect", { class: style, x: x(at).toFixed(1), y: y + 4, width: Math.max(0.5, Math.min(width - 0.6, across - 8 - x(at))).toFixed(1), height: row - 9 },
          s("title", {}, `${hour(at)}: ${kept} of ${starts} in time, longest wait ${span(oldest)}`)) : null;
      }),
    ];
  });
  const told = lanes.map((lane) => {
    const starts = lane.points.reduce((sum, p) => sum + p[1], 0);
    const kept = lane.points.reduce((sum, p) => sum + p[2], 0);
    return `${lane.queue} ${starts ? percent(kept / starts) : "nothing started"}`;
  });
  return s("svg", { class: "chart", viewBox: `0 0 ${across} ${height}`, role: "img",
    "aria-label": `Promises kept over time: ${told.join(", ")}` },
    rows, timeAxis(from_ms, to_ms, x, lanes.length * row));
}

function cellStyle(starts, kept, isLate) {
  if (!starts) return isLate ? "missed" : null;
  const share = kept / starts;
  if (share >= 1 && !isLate) return "kept";
  return share >= 0.9 ? "mostly" : "missed";
}

function cut(text, length) {
  return text.length > length ? `${text.slice(0, length - 1)}…` : text;
}

// The same for one lane, as small as a word.
export function spark(points, slo_ms) {
  const width = 120;
  const height = 27;
  if (points.length < 2) return h("span", { class: "soft" }, "–");
  const from = points[0][0];
  const over = Math.max(1, points[points.length - 1][0] - from);
  const most = Math.max(1.1, ...points.map((p) => p[3] / slo_ms));
  const x = (at) => ((at - from) / over) * width;
  const y = (share) => height - 1 - (share / most) * (height - 3);
  const path = points.map((p, i) => `${i ? "L" : "M"}${x(p[0]).toFixed(1)} ${y(p[3] / slo_ms).toFixed(1)}`).join("");
  const isBroken = points.some((p) => p[3] > slo_ms);
  const style = isBroken ? "lane1" : "lane2";
  return s("svg", { class: "spark", viewBox: `0 0 ${width} ${height}`, role: "img",
    "aria-label": `Longest wait of late: ${span(Math.max(...points.map((p) => p[3])))} of ${promise(slo_ms)}` },
    s("path", { class: `area ${style}`, d: `${path}L${width} ${height}L0 ${height}Z` }),
    s("line", { class: "promise", x1: 0, x2: width, y1: y(1), y2: y(1) }),
    s("path", { class: `curve ${style}`, d: path }));
}

// Slots that were there, busy and wanted.
export function slotsChart(points, from_ms, to_ms) {
  const across = wide();
  const height = 130;
  const left = 44;
  const bottom = height - 22;
  const most = Math.max(1, ...points.map((p) => Math.max(p[2], p[3])));
  const x = (at) => left + ((at - from_ms) / Math.max(1, to_ms - from_ms)) * (across - left - 8);
  const y = (count) => bottom - (count / most) * (bottom - 12);
  const line = (place) => points.map((p, i) => `${i ? "L" : "M"}${x(p[0]).toFixed(1)} ${y(p[place]).toFixed(1)}`).join("");
  if (!points.length) return null;
  const ends = `L${x(points[points.length - 1][0]).toFixed(1)} ${bottom}L${x(points[0][0]).toFixed(1)} ${bottom}Z`;
  const now = points[points.length - 1];
  return s("svg", { class: "chart", viewBox: `0 0 ${across} ${height}`, role: "img",
    "aria-label": `Worker slots: ${now[1]} busy of ${now[2]}, ${now[3]} wanted` },
    [0, most].map((count) => [
      s("line", { class: "grid", x1: left, x2: across - 8, y1: y(count), y2: y(count) }),
      s("text", { class: "end", x: left - 6, y: y(count) + 4 }, String(count)),
    ]),
    s("path", { class: "there", d: line(2) + ends }),
    s("path", { class: "area lane0", d: line(1) + ends }),
    s("path", { class: "curve lane0", d: line(1) }),
    s("path", { class: "wanted", d: line(3) }),
    timeAxis(from_ms, to_ms, x, bottom));
}

// Waits of a simulated run, on a scale that shows short and long promises alike.
export function waitsChart(run) {
  const across = wide();
  const height = 300;
  const left = 56;
  const bottom = height - 22;
  const waits = run.lanes.flatMap((lane) => [lane.slo_ms * 1.3, ...lane.points_p99_ms.filter((p) => p !== null)]);
  const top = Math.log10(1 + Math.max(1000, ...waits) / 100);
  const x = (at) => left + (at / Math.max(1, run.ended_ms)) * (across - left - 8);
  const y = (ms) => bottom - (Math.log10(1 + ms / 100) / top) * (bottom - 12);
  const ticks = [100, 1000, 5000, 30_000, 120_000, 600_000, 3_600_000].filter((ms) => y(ms) > 6);
  const spans = [5000, 10_000, 30_000, 60_000, 300_000, 600_000, 3_600_000];
  const step = spans.find((one) => run.ended_ms / one <= across / 110) ?? 3_600_000;
  const times = [];
  for (let at = 0; at <= run.ended_ms; at += step) times.push(at);
  return s("svg", { class: "chart", viewBox: `0 0 ${across} ${height}`, role: "img",
    "aria-label": `Waits of the run: ${run.lanes.map((lane) => `${lane.queue} kept ${percent(lane.attained)}`).join(", ")}` },
    ticks.map((ms) => [
      s("line", { class: "grid", x1: left, x2: across - 8, y1: y(ms), y2: y(ms) }),
      s("text", { class: "end", x: left - 6, y: y(ms) + 4 }, promise(ms)),
    ]),
    times.map((at) => s("text", { class: "middle", x: x(at), y: bottom + 16 }, promise(at))),
    run.lanes.map((lane, place) => {
      const points = lane.points_p99_ms.map((wait, bin) => [bin * run.bin_ms, wait]).filter(([, wait]) => wait !== null);
      const path = points.map(([at, wait], i) => `${i ? "L" : "M"}${x(at).toFixed(1)} ${y(wait).toFixed(1)}`).join("");
      return [
        s("line", { class: `promise lane${place % 8}`, x1: left, x2: across - 8, y1: y(lane.slo_ms), y2: y(lane.slo_ms) }),
        s("path", { class: `curve lane${place % 8}`, d: path || "M0 0" }),
      ];
    }));
}
