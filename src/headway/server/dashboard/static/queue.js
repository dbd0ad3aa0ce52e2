// One queue: what waits, what stops it, who has what, and what can be done.

import { get, may, path, send } from "./api.js";
import { spark } from "./charts.js";
import { act, later, question } from "./dialogs.js";
import { badge, bar, card, facts, field, h, link, part, table, tile } from "./dom.js";
import { actWords } from "./acts.js";
import { jobTable } from "./jobs.js";
import { operationsCard } from "./operations.js";
import { scheduleTable } from "./schedules.js";
import { ago, clock, number, percent, promise, short, span, tenantName } from "./words.js";

export async function queue(page) {
  const name = page.name;
  page.title(name);
  const body = part("div");
  let shown = null;

  async function load() {
    const [view, busy, trends, acts, operations, schedules, oldest] = await Promise.all([
      get(path("queues", name)),
      get(path("queues", name, "busy"), { limit: 20 }),
      get("v1/trends", { queue: name }),
      get("v1/acts", { queue: name, limit: 10 }),
      get("v1/operations"),
      get(path("queues", name, "schedules"), { limit: 20 }),
      get("v1/jobs", { queue: name, state: "ready", order: "oldest", limit: 8 }).catch(() => null),
    ]);
    if (!page.isOpen()) return;
    shown = view;
    const mine = operations.operations.filter((one) => one.queue === name);
    body.show(
      head(view, again), holdNotice(view, acts.acts), counts(view),
      lanes(view, trends), oldestJobs(view, oldest),
      h("div", { class: "two uneven" }, limits(view), tenants(view, busy, again)),
      mine.length ? operationsCard(mine, again) : null,
      rules(view, again),
      schedules.schedules.length ? card("Schedules", null, scheduleTable(schedules.schedules, again)) : null,
      actsCard(acts.acts));
  }
  const again = () => load().catch(() => {});

  await load();
  page.every(3000, again);
  return body.node;
}

function head(view, again) {
  const name = view.name;
  const hold = (verb, word) => () => question({
    title: `${word} ${name}?`,
    text: verb === "block"
      ? "Nothing of it starts until somebody with the scope operate lifts the block. Jobs that run go on."
      : "Nothing of it starts until it is resumed. Jobs that run go on.",
    verb: word, isDanger: false,
    act: async (_, reason) => {
      await send("POST", path("queues", name, verb), undefined, reason);
      again();
      return `${name} is ${verb === "block" ? "blocked" : "paused"}.`;
    },
  });
  const lift = (verb, said) => () => act(async () => {
    await send("POST", path("queues", name, verb));
    again();
    return said;
  });
  return h("div", { class: "head" },
    h("div", {}, h("h1", {}, name, " ",
      view.is_blocked ? badge("blocked", "bad") : null, view.is_paused ? badge("paused", "warn") : null),
    h("p", { class: "soft" }, `A job may wait ${promise(toMs(view.rules.slo))} unless it says otherwise.`)),
    h("div", { class: "actions" },
      may("manage", name) ? (view.is_paused
        ? h("button", { onclick: lift("resume", `${name} goes on.`) }, "Resume")
        : h("button", { onclick: hold("pause", "Pause") }, "Pause…")) : null,
      may("operate", name) ? (view.is_blocked
        ? h("button", { onclick: lift("unblock", `The block on ${name} is lifted.`) }, "Unblock")
        : h("button", { onclick: hold("block", "Block") }, "Block…")) : null,
      may("manage", name) ? h("button", { class: "danger", onclick: () => purge(name, again) }, "Purge…") : null));
}

async function purge(name, again) {
  const tenant = h("input", { name: "tenant", maxlength: 128, autocomplete: "off" });
  const ask = later();
  let preview;
  try {
    preview = await send("POST", path("queues", name, "purge"), { preview: true });
  } catch (error) {
    preview = { matched: 0, is_more: false };
    void act(() => { throw error; });
    return;
  }
  await ask({
    title: `Purge ${name}?`,
    text: `${preview.is_more ? "At least " : ""}${number(preview.matched)} jobs that have not started would be cancelled. This can't be undone.`,
    fields: [field("Of one tenant only (empty: of all)", tenant)],
    verb: "Purge",
    act: async (form, reason) => {
      const body = form.get("tenant") ? { tenant: form.get("tenant") } : {};
      await send("POST", path("queues", name, "purge"), body, reason);
      again();
      return "The purge has begun.";
    },
  });
}

function holdNotice(view, acts) {
  const lines = [];
  for (const [isOn, what, word] of [[view.is_blocked, "queues_block", "Blocked"], [view.is_paused, "queues_pause", "Paused"]]) {
    if (!isOn) continue;
    const by = acts.find((one) => one.what === what);
    lines.push(h("p", { class: "notice" }, h("strong", {}, word),
      by ? ` by ${by.who} ${ago(by.at_ms)}, at ${clock(by.at_ms)}` : "; who did it is not known here",
      by?.reason ? [": ", h("q", {}, by.reason)] : by ? ", without a reason" : "",
      ". Time that a queue is held does not count against its promises."));
  }
  return lines;
}

function counts(view) {
  const at = (state) => `#/search?${new URLSearchParams({ queue: view.name, state })}`;
  return h("div", { class: "tiles" },
    tile("Ready", short(view.counts.ready), null, at("ready")),
    tile("Running", short(view.counts.leased), null, `#/running?${new URLSearchParams({ queue: view.name })}`),
    tile("Scheduled", short(view.counts.scheduled), null, at("scheduled")),
    tile("Waiting for replies", short(view.counts.waiting), null, `#/waiting?${new URLSearchParams({ queue: view.name })}`),
    tile("Dead letters", short(view.counts.dead), null, link("dead", view.name), view.counts.dead ? "bad" : ""));
}

function lanes(view, trends) {
  const points = new Map(trends.lanes.map((lane) => [lane.slo_ms, lane.points]));
  return card("Lanes", "jobs that may wait equally long",
    table("Lanes", [
      ["Promise", (lane) => [promise(lane.slo_ms), lane.critical ? [" ", badge("critical")] : null], "name"],
      ["Ready", (lane) => short(lane.ready), "num"],
      ["State", (lane) => laneState(lane, points.get(lane.slo_ms))],
      ["Oldest wait", (lane) => lane.ready ? span(last(points.get(lane.slo_ms))) : "–", "num"],
      ["Kept 5 min", (lane) => kept(points.get(lane.slo_ms)), "num"],
      ["A start every", (lane) => lane.start_interval_ms ? span(lane.start_interval_ms) : "–", "num aside"],
      ["Last half hour", (lane) => spark(points.get(lane.slo_ms) ?? [], lane.slo_ms), "aside"],
    ], view.lanes, "No job has come yet."));
}

function last(points) {
  return points?.length ? points[points.length - 1][3] : null;
}

function laneState(lane, points) {
  if (!lane.ready) return h("span", { class: "soft" }, "empty");
  if ((last(points) ?? 0) > lane.slo_ms) return badge("late", "bad");
  return lane.is_due ? badge("due", "warn") : badge("in time", "good");
}

function kept(points) {
  const since = Date.now() - 300_000;
  const late = (points ?? []).filter((p) => p[0] >= since);
  const starts = late.reduce((sum, p) => sum + p[1], 0);
  return starts ? percent(late.reduce((sum, p) => sum + p[2], 0) / starts) : "–";
}

function oldestJobs(view, found) {
  if (!view.counts.ready || found === null) return null;
  return card("Oldest ready jobs", "open one to see why it is not running",
    jobTable("Oldest ready jobs", ["id", "kind", "tenant",
      ["Ready for", (job) => span(Date.now() - job.run_at_ms), "num"],
      ["", (job) => h("a", { href: link("job", job.id), "aria-label": `Why is ${job.id} not running?` }, "why?"), "num"],
    ], found.jobs, "They have just started, or are not indexed yet."));
}

function limits(view) {
  return card("Limits", "the most used first",
    table("Limits", [
      ["Limit", (one) => [h("strong", {}, one.name), one.value ? ` ${one.value}` : ""], "wide"],
      ["In use", (one) => {
        const share = one.max ? one.used / one.max : 1;
        return h("span", { class: "meter" }, h("span", {}, `${number(one.used)} of ${number(one.max)}`), bar(share, share >= 1 ? "bad" : share > 0.8 ? "warn" : "plain"));
      }],
      ["", (one) => one.used ? h("a", { href: `#/running?${new URLSearchParams({ queue: view.name, holding: one.name, value: one.value })}` }, "who holds it?") : "", "num"],
    ], view.limits, "This queue has no limits in use."));
}

function tenants(view, busy, again) {
  const slots = busy.tenants.reduce((sum, one) => sum + one.leased, 0);
  const weights = busy.tenants.reduce((sum, one) => sum + one.weight, 0);
  return card("Tenants", busy.total > busy.tenants.length ? `${busy.tenants.length} of ${number(busy.total)} that wait or run` : "that wait or run",
    table("Tenants", [
      ["Tenant", (one) => [h("span", { class: one.tenant ? "" : "soft" }, tenantName(one.tenant)), " ",
        one.is_paused ? badge("paused", "warn") : null, one.is_over ? badge("over share", "warn") : null], "wide"],
      ["Running", (one) => h("span", { class: "meter" },
        h("span", {}, `${number(one.leased)} · ${percent(slots ? one.leased / slots : 0)}`), bar(slots ? one.leased / slots : 0, "plain"))],
      ["Fair share", (one) => percent(weights ? one.weight / weights : 0), "num"],
      ["Ready", (one) => short(one.ready), "num"],
      ["Wait", (one) => span(one.oldest_ms), "num"],
      ["", (one) => may("manage", view.name) && one.tenant ? h("button", { class: "small", "aria-label": `Rules of ${one.tenant}`, onclick: () => tenantRules(view.name, one, again) }, "Rules…") : "", "num"],
    ], busy.tenants, "Nobody waits or runs."));
}

function tenantRules(name, one, again) {
  const weight = h("input", { name: "weight", type: "number", min: "0.001", max: "1000", step: "any", value: one.weight });
  const cap = h("input", { name: "cap", type: "number", min: "0", value: one.cap ?? "" });
  const paused = h("input", { name: "paused", type: "checkbox", checked: one.is_paused });
  return question({
    title: `Rules of ${one.tenant} in ${name}`,
    text: "They hold at once, for what waits already, too.",
    fields: [field("Weight: its share against the others'", weight), field("Cap: units it may hold at once (empty: none)", cap),
      h("label", { class: "check" }, paused, "paused: nothing of it starts")],
    verb: "Set", isDanger: false,
    act: async (form, reason) => {
      const body = { weight: Number(form.get("weight")), paused: form.has("paused"), cap: form.get("cap") === "" ? -1 : Number(form.get("cap")) };
      await send("PUT", path("queues", name, "tenants", one.tenant), body, reason);
      again();
      return `The rules of ${one.tenant} hold.`;
    },
  });
}

function rules(view, again) {
  const given = view.rules;
  const windows = given.windows?.map((one) => `${one.span} ${one.zone}`).join(", ");
  return card("Rules", null,
    facts([
      ["Promise", promise(toMs(given.slo))], ["Lease", promise(toMs(given.lease))], ["Attempts", String(given.attempts)],
      ["Order", given.order === "fair" ? "fair between tenants" : given.order],
      ["Windows", windows ? `${windows}: jobs start only then` : null],
      ["Length", given.max_length ? `at most ${number(given.max_length)}` : null],
      ["Limits", given.limits.map((one) => `${one.name}: ${one.type}${one.per ? ` for each ${one.per}` : ""}`).join(", ") || null],
    ]),
    h("details", { class: "more" }, h("summary", {}, "All of them"), h("pre", { tabindex: 0 }, JSON.stringify(given, null, 2))),
    may("manage", view.name) ? h("p", {}, h("button", { class: "small", onclick: () => changeRules(view, again) }, "Change…")) : null);
}

function changeRules(view, again) {
  const text = h("textarea", { name: "rules", spellcheck: "false" });
  text.value = JSON.stringify({ slo: view.rules.slo, limits: view.rules.limits }, null, 2);
  return question({
    title: `Change rules of ${view.name}`,
    text: "What is named here is set, null takes a rule back to its default, and all others stay. Jobs that wait follow at once.",
    fields: [field("Rules as JSON", text)],
    verb: "Change", isDanger: false,
    act: async (form, reason) => {
      await send("PATCH", path("queues", view.name), JSON.parse(form.get("rules")), reason);
      again();
      return "The new rules hold.";
    },
  });
}

function actsCard(acts) {
  return card("Acts", "what operators did here",
    table("Acts", [
      ["When", (one) => ago(one.at_ms), "nowrap"], ["Who", (one) => one.who, "wide"],
      ["What", (one) => actWords(one), "wide"], ["Why", (one) => one.reason || "–", "wide"],
    ], acts, "Nobody has done anything to it yet."));
}

// Durations of rules are milliseconds, or text such as "5s".
function toMs(value) {
  if (typeof value === "number") return value;
  const [, count, unit] = /^([\d.]+) ?(ms|s|m|h|d)$/.exec(value) ?? [null, "0", "ms"];
  return Number(count) * { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 }[unit];
}
