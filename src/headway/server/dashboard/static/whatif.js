// What if: today's load with other workers, in virtual time.

import { get, send } from "./api.js";
import { legend, waitsChart } from "./charts.js";
import { bar, card, field, h, link, part, table } from "./dom.js";
import { number, percent, promise, span, tone } from "./words.js";

const LANES = 12;

export async function whatIf(page) {
  const live = await get("v1/live");
  const lanes = live.lanes.filter((lane) => lane.arrivals_per_s > 0.01).slice(0, LANES);
  const result = part("div", { "aria-live": "polite" });
  const there = live.slots ? live.slots.busy + live.slots.idle : 0;
  const slots = h("input", { name: "slots", type: "number", min: "1", max: "100000", value: Math.max(1, there || live.slots?.wanted || 10) });
  const load = h("input", { name: "load", type: "number", min: "1", max: "10000", value: 100 });
  const minutes = h("input", { name: "minutes", type: "number", min: "1", max: "60", value: 5 });
  const text = h("textarea", { name: "scenario", spellcheck: "false", "aria-label": "The scenario as TOML" });
  const go = h("button", { class: "main", type: "submit" }, "Simulate");
  const write = () => { text.value = scenario(lanes, Number(slots.value), Number(load.value) / 100, Number(minutes.value)); };
  for (const input of [slots, load, minutes]) input.oninput = write;
  write();

  async function submitted(event) {
    event.preventDefault();
    go.disabled = true;
    result.show(h("p", { class: "soft" }, "Simulating…"));
    try {
      const run = await send("POST", "v1/simulations", { scenario: text.value });
      if (page.isOpen()) result.show(shown(run));
    } catch (error) {
      result.show(h("p", { class: "notice bad", role: "alert" }, error.message));
    }
    go.disabled = false;
  }

  return h("div", {},
    h("h1", {}, "What if"),
    h("p", { class: "soft" }, lanes.length
      ? `What arrives now in ${lanes.length === 1 ? "its lane" : `${lanes.length} lanes`}, run by the production scheduler in virtual time: with more or fewer workers, or with more to do.`
      : "Nothing arrives now, so this begins with an example. The production scheduler runs it in virtual time."),
    h("section", { class: "card" },
      h("form", { onsubmit: submitted },
        h("div", { class: "filters" }, field("Worker slots", slots), field("Load, in percent of now", load), field("Minutes", minutes), go),
        h("details", {}, h("summary", {}, "The scenario, to be changed at will"), text))),
    result.node);
}

function scenario(lanes, slots, load, minutes) {
  const all = lanes.length ? lanes : [
    { queue: "payment", slo_ms: 5000, arrivals_per_s: 8, run_ms: 800 },
    { queue: "report", slo_ms: 120_000, arrivals_per_s: 6, run_ms: 1500 },
  ];
  const names = [...new Set(all.map((lane) => lane.queue))];
  const parts = [`title = "${number(slots)} slots, ${Math.round(load * 100)} % of the load"`, `duration = "${minutes}m"`, "drain = \"2m\"", "", "[[workers]]", `slots = ${Math.max(1, Math.round(slots))}`];
  for (const name of names) {
    const slo = Math.min(...all.filter((lane) => lane.queue === name).map((lane) => lane.slo_ms));
    parts.push("", "[[queues]]", `name = ${JSON.stringify(name)}`, `slo = "${slo}ms"`);
  }
  all.forEach((lane, place) => {
    parts.push("", "[[loads]]", `name = "load-${place + 1}"`, `queue = ${JSON.stringify(lane.queue)}`, `slo = "${lane.slo_ms}ms"`,
      `arrivals = { kind = "poisson", per_second = ${Math.max(0.01, lane.arrivals_per_s * load).toFixed(3)} }`,
      `service = { kind = "exponential", mean = "${Math.max(1, Math.round(lane.run_ms || 500))}ms" }`);
  });
  return parts.join("\n");
}

function shown(run) {
  const isKept = run.attained >= 0.999;
  return h("div", {},
    h("section", { class: "card" },
      h("header", {}, h("h2", {}, isKept ? "Every promise would be kept" : `${percent(run.attained)} of the promises would be kept`),
        h("span", { class: "soft" }, `${run.title}: ${number(run.jobs)} jobs in ${span(run.ended_ms)}`)),
      waitsChart(run), legend(run.lanes),
      h("p", { class: "soft small" }, "Lines are the 99th percentile of waits, dashes the promises; the scale is logarithmic.")),
    card("Lanes", null, table("Lanes of the run", [
      ["Lane", (lane) => h("a", { href: link("queue", lane.queue) }, lane.queue), "name wide"],
      ["Promise", (lane) => promise(lane.slo_ms), "num"],
      ["Kept", (lane) => h("span", { class: "meter" }, h("span", { class: tone(lane.attained) }, percent(lane.attained)), bar(lane.attained, lane.attained >= 0.999 ? "" : "warn"))],
      ["Median wait", (lane) => span(lane.p50_ms), "num"], ["99 %", (lane) => span(lane.p99_ms), "num"], ["Longest", (lane) => span(lane.max_ms), "num"],
      ["Jobs", (lane) => number(lane.jobs), "num aside"], ["Not started", (lane) => number(lane.unstarted), "num aside"],
    ], run.lanes)));
}
