// Are the promises kept? One sentence, then the figures behind it.

import { get, path } from "./api.js";
import { keptChart, legend, pressureChart, slotsChart, spark } from "./charts.js";
import { badge, bar, card, h, link, part, table, tile } from "./dom.js";
import { clock, number, percent, promise, rate, several, short, span, tone } from "./words.js";

const SHOWN = 3;
const SPANS = { "30m": 1_800_000, "24h": 86_400_000 };

export async function overview(page) {
  const top = part("div");
  const lanesPart = part("div");
  const charts = part("div");
  const held = part("div");
  let length = page.query.span === "24h" ? "24h" : "30m";
  let live = null;
  let whose = null;
  let trends = { lanes: [], slots: [], since_ms: 0, step_ms: 10_000 };

  function draw() {
    if (live === null) return;
    top.show(verdict(live, whose), tiles(live));
    lanesPart.show(lanesCard(live, trends));
  }

  async function load() {
    const [told, holds] = await Promise.all([
      get("v1/trends", { span: length }),
      get("v1/ranking", { held: "yes", limit: 5 }),
    ]);
    const worst = live?.lanes.find(isBroken);
    whose = worst ? await mostOf(worst) : null;
    if (!page.isOpen()) return;
    trends = told;
    held.show(holds.total ? notice(holds) : null);
    charts.show(chartsCard(trends, length, live?.slots, (chosen) => { length = chosen; load(); }));
    draw();
  }

  await load();
  await new Promise((first) => page.live((told) => {
    live = told;
    draw();
    first();
  }));
  if (live.lanes.some(isBroken)) load().catch(() => {});
  page.every(10_000, () => load().catch(() => {}));
  return h("div", {}, top.node, held.node, lanesPart.node, charts.node);
}

function isBroken(lane) {
  return lane.broken_since_ms !== null || lane.late > 0;
}

// Who has most of what waits there, if one tenant stands out.
async function mostOf(lane) {
  const busy = await get(path("queues", lane.queue, "busy"), { limit: 50 }).catch(() => ({ tenants: [] }));
  const ready = busy.tenants.reduce((sum, one) => sum + one.ready, 0);
  const most = [...busy.tenants].sort((one, other) => other.ready - one.ready)[0];
  if (!most?.tenant || busy.tenants.length < 2 || most.ready < 0.6 * ready) return null;
  return { queue: lane.queue, tenant: most.tenant, share: most.ready / ready };
}

function verdict(live, whose) {
  const broken = live.lanes.filter(isBroken);
  if (!broken.length) {
    const isQuiet = live.arrivals_per_s < 0.01 && live.counts.ready === 0;
    return h("div", { class: "verdict good" }, h("span", { class: "light" }),
      h("div", {}, h("h1", {}, "Every promise is being kept"),
        h("p", { class: "soft" }, isQuiet
          ? "Nothing arrives and nothing waits."
          : `${several(live.lanes_total, "lane")}, ${several(live.counts.ready, "job")} ready; ${closest(live)}`)));
  }
  const worst = broken[0];
  const since = worst.broken_since_ms;
  const others = live.lanes_broken - 1;
  const late = broken.reduce((sum, lane) => sum + lane.late, 0);
  return h("div", { class: "verdict bad" }, h("span", { class: "light" }),
    h("div", {},
      h("h1", {}, h("a", { href: link("queue", worst.queue) }, worst.queue),
        ` has broken its promise of ${promise(worst.slo_ms)}`,
        since ? [" since ", h("span", { class: "nowrap" }, clock(since)), `, for ${span(live.at_ms - since)}`] : ""),
      h("p", { class: "soft" },
        late ? `At least ${several(late, "job")} ${late === 1 ? "waits" : "wait"} past the promise. ` : "Nothing is late any more; it was a moment ago. ",
        whose?.queue === worst.queue ? [h("strong", {}, whose.tenant), ` sent ${percent(whose.share)} of what is ready there. `] : "",
        others ? ["Also late: ", others > SHOWN ? `${number(others)} other lanes. ` : broken.slice(1).map((lane) =>
          [h("a", { href: link("queue", lane.queue) }, lane.queue), ` (${promise(lane.slo_ms)}${lane.broken_since_ms ? `, since ${clock(lane.broken_since_ms)}` : ""}). `])] : "",
        keptWords(live))));
}

function closest(live) {
  const lane = live.lanes.find((one) => one.ready > 0);
  if (!lane) return "nothing waits.";
  return `${lane.queue} comes closest: its oldest job has waited ${span(lane.oldest_ms)} of ${promise(lane.slo_ms)}.`;
}

function keptWords(live) {
  const rest = live.lanes_total - live.lanes_broken;
  const whoever = live.lanes_broken === 1 ? "It is" : "They are";
  return rest ? `${whoever} sacrificed so that ${several(rest, "lane")} ${rest === 1 ? "keeps its promise" : "keep theirs"}.` : "";
}

function tiles(live) {
  const slots = live.slots;
  const there = slots ? slots.busy + slots.idle : 0;
  const isShort = slots && slots.wanted > there;
  return h("div", { class: "tiles" },
    tile("Kept, last 5 minutes", percent(live.attained), "of all starts", null, tone(live.attained)),
    tile("Ready", short(live.counts.ready), `${rate(live.arrivals_per_s)} arrive, ${rate(live.starts_per_s)} start`, "#/queues?sort=ready"),
    slots ? tile("Workers", `${number(slots.busy)} / ${number(there)}`,
      isShort ? h("span", { class: "warn" }, `slots busy; ${number(slots.wanted)} wanted`) : `slots busy; ${number(slots.wanted)} wanted`, "#/running") : null,
    tile("Waiting for replies", short(live.counts.waiting), `${short(live.counts.scheduled)} for their time`, "#/waiting"),
    tile("Dead letters", short(live.counts.dead), live.counts.dead ? "to look at" : "none", "#/dead", live.counts.dead ? "bad" : ""));
}

function lanesCard(live, trends) {
  const known = new Map(trends.lanes.map((lane) => [`${lane.queue}/${lane.slo_ms}`, lane.points]));
  const isCut = live.lanes.length < live.lanes_total;
  return card("Lanes", isCut ? `the ${live.lanes.length} closest to their promise, of ${number(live.lanes_total)}` : "closest to its promise first",
    table("Lanes", [
      ["Lane", (lane) => [h("a", { href: link("queue", lane.queue) }, lane.queue),
        lane.broken_since_ms ? h("div", { class: "bad small" }, `broken for ${span(live.at_ms - lane.broken_since_ms)}`) : null], "name wide"],
      ["Oldest wait", oldest],
      ["Ready", (lane) => short(lane.ready), "num aside"],
      ["Late", (lane) => lane.late ? h("span", { class: "bad" }, `${lane.is_sure ? "" : "≥ "}${short(lane.late)}`) : "0", "num"],
      ["In", (lane) => rate(lane.arrivals_per_s), "num aside"],
      ["Starts", (lane) => rate(lane.starts_per_s), "num aside"],
      ["Kept 5 min", (lane) => h("span", { class: tone(lane.attained) }, percent(lane.attained)), "num"],
      ["Last half hour", (lane) => spark((known.get(`${lane.queue}/${lane.slo_ms}`) ?? []).slice(-180), lane.slo_ms), "aside"],
    ], live.lanes, "No queue has had a job yet. Enqueue one, and its lane appears here."));
}

function oldest(lane) {
  const share = lane.oldest_ms / lane.slo_ms;
  const style = share > 1 ? "bad" : share > 0.8 ? "warn" : "";
  return h("span", { class: "meter" },
    h("span", {}, lane.ready ? h("span", { class: style }, span(lane.oldest_ms)) : h("span", { class: "soft" }, "none"),
      h("span", { class: "soft" }, ` of ${promise(lane.slo_ms)}`)),
    bar(share, style));
}

function chartsCard(trends, length, slots, choose) {
  const why = slots?.wanted ? `${number(slots.wanted)} are wanted: ${slots.reason}.` : null;
  const to = Date.now();
  const from = Math.max(to - SPANS[length], Math.min(trends.since_ms || to, to - 120_000));
  const lanes = trends.lanes.filter((lane) => lane.points.some((p) => p[1] || p[4]));
  const shown = lanes.slice(0, 8);
  const turn = h("span", { class: "switch", role: "group", "aria-label": "How far back" },
    ["30m", "24h"].map((one) => h("button", { "aria-pressed": String(one === length), onclick: () => choose(one) },
      one === "30m" ? "30 min" : "24 h")));
  const note = `Watched since ${clock(trends.since_ms)}.`;
  if (!shown.length) return card("Over time", note, h("p", { class: "empty" }, "Nothing has started yet."));
  return h("section", { class: "card" },
    h("header", {}, h("h2", {}, "Over time"), turn),
    h("h3", {}, "Promises kept"),
    keptChart(lanes.slice(0, 16), from, to, trends.step_ms),
    h("p", { class: "legend" },
      ...[["kept", "all in time", "lane2"], ["mostly", "nearly all", "lane4"], ["missed", "broken", "lane1"]]
        .map(([style, text]) => h("span", {}, keyCell(style), text))),
    h("h3", {}, "Oldest wait, as a share of its promise"),
    pressureChart(shown, from, to), legend(shown),
    trends.slots.length ? [
      h("h3", {}, "Worker slots"), why ? h("p", { class: "soft small" }, why) : null,
      slotsChart(trends.slots.filter((p) => p[0] >= from), from, to),
      h("p", { class: "legend" },
        h("span", {}, h("i", { class: "lane0" }), "busy"), h("span", {}, h("i", { class: "lane7" }), "there"),
        h("span", {}, h("i", { class: "lane1" }), "wanted")),
    ] : null,
    h("p", { class: "soft small" }, note));
}

function keyCell(style) {
  return h("i", { class: `key ${style}` });
}

function notice(holds) {
  return h("p", { class: "notice" },
    holds.queues.map((one, place) => [place ? ", " : "",
      h("a", { href: link("queue", one.name) }, one.name), " ",
      badge(one.is_blocked ? "blocked" : "paused", "warn")]),
    holds.total > holds.queues.length ? ` and ${number(holds.total - holds.queues.length)} more` : "",
    ": nothing of ", holds.total === 1 ? "it" : "them", " starts, and the time does not count against its promise.");
}
