// One job: where it stands, why it is not running, and everything that happened to it.

import { get, getText, may, path, send, sendText } from "./api.js";
import { question } from "./dialogs.js";
import { badge, card, facts, field, h, link, part } from "./dom.js";
import { member, pretty } from "./json.js";
import { clock, ago, number, promise, span, stateName, stateTone, tenantName } from "./words.js";

const SHOWN = 65_536;

export async function job(page) {
  const id = page.name;
  page.title(id);
  const body = part("div");
  let isWhole = false;

  async function load() {
    const text = await getText(path("jobs", id));
    const shown = JSON.parse(text);
    const isOpen = ["ready", "scheduled", "leased", "waiting"].includes(shown.state);
    const [why, line] = await Promise.all([
      isOpen ? get(path("jobs", id, "why")).catch(() => null) : null,
      get(path("jobs", id, "timeline"), { limit: 200 }).catch(() => null),
    ]);
    if (!page.isOpen()) return;
    const payload = member(text, "payload");
    body.show(
      head(shown, payload, again),
      why ? whyCard(why, shown) : null,
      errorsCard(shown),
      h("div", { class: "two" }, timelineCard(line), factsCard(shown)),
      payloadCard(shown, payload, isWhole, () => { isWhole = true; again(); }));
  }
  const again = () => load().catch(() => {});

  await load();
  page.every(2000, again);
  return body.node;
}

function head(shown, payload, again) {
  const mine = may("manage", shown.queue);
  const isOpen = ["ready", "scheduled", "leased", "waiting"].includes(shown.state);
  return h("div", { class: "head" },
    h("div", {}, h("h1", {}, shown.kind || "job", " ", h("span", { class: "mono soft" }, shown.id), " ",
      badge(stateName(shown.state), stateTone(shown.state)),
      shown.is_cancel_requested ? [" ", badge("cancel requested", "warn")] : null),
    h("p", { class: "soft" }, "in ", h("a", { href: link("queue", shown.queue) }, shown.queue), ` for ${tenantName(shown.tenant)}, may wait ${promise(shown.slo_ms)}`)),
    mine ? h("div", { class: "actions" },
      isOpen ? h("button", { class: "danger", onclick: () => cancel(shown, again) }, "Cancel…") : null,
      shown.state === "dead" ? [
        h("button", { class: "main", onclick: () => redrive(shown, null, again) }, "Redrive…"),
        payload === null ? null : h("button", { onclick: () => redrive(shown, payload, again) }, "Edit and redrive…"),
        h("button", { class: "danger", onclick: () => discard(shown, again) }, "Discard…"),
      ] : null) : null);
}

function cancel(shown, again) {
  return question({
    title: `Cancel ${shown.id}?`,
    text: shown.state === "leased" ? "It runs: its worker is told, and stops when it next asks." : "It will not run. This can't be undone.",
    verb: "Cancel the job",
    act: async (_, reason) => {
      const told = await send("DELETE", path("jobs", shown.id), undefined, reason);
      again();
      return told.outcome === "cancelled" ? "It is cancelled." : "Its worker is told.";
    },
  });
}

function redrive(shown, payload, again) {
  const text = h("textarea", { name: "payload", spellcheck: "false" });
  if (payload !== null) text.value = pretty(payload);
  return question({
    title: `Redrive ${shown.id}?`,
    text: "It goes back to its queue with fresh attempts; its errors stay with it.",
    fields: payload === null ? [] : [field("Payload as JSON, for its next attempts", text)],
    verb: "Redrive", isDanger: false,
    act: async (_, reason) => {
      if (payload === null) await send("POST", path("jobs", shown.id, "redrive"), undefined, reason);
      else {
        JSON.parse(text.value);
        await sendText("POST", path("jobs", shown.id, "redrive"), `{"payload":${text.value}}`, reason);
      }
      again();
      return "It is back in its queue.";
    },
  });
}

function discard(shown, again) {
  return question({
    title: `Discard ${shown.id}?`, text: "It is deleted for good; its history stays.", verb: "Discard",
    act: async (_, reason) => {
      await send("POST", path("queues", shown.queue, "dead", "discard"), { filter: { ids: [shown.id] } }, reason);
      again();
      return "It is being discarded.";
    },
  });
}

function whyCard(why, shown) {
  const isWaiting = ["ready", "scheduled"].includes(why.state);
  const words = (reason) => reason.text
    .replace(/\b(1[0-9]{12})\b/, (found) => clock(Number(found)));
  return card(isWaiting ? "Why is it not running?" : "Where it is", null,
    h("ul", { class: "reasons" }, why.reasons.map((reason) => h("li", {},
      h("strong", {}, RULES[reason.rule] ?? "Stopped"), ": ", words(reason),
      reason.until_ms ? h("span", { class: "soft" }, ` until ${clock(reason.until_ms)} (${ago(reason.until_ms)})`) : null,
      reason.holders.length ? h("div", { class: "holders" }, h("span", { class: "soft" }, "held by"),
        reason.holders.map((one) => h("a", { class: "mono", href: link("job", one) }, one))) : null))),
    isWaiting ? h("p", { class: "soft" },
      why.state === "ready" ? `${number(why.ahead)} of its lane are to start before it. ` : "",
      why.starts_ms ? `It is expected to start at about ${clock(why.starts_ms)} (${ago(why.starts_ms)}).` : "When it starts can't be said.",
      shown.state === "ready" ? ` It has been ready for ${span(Date.now() - shown.run_at_ms)} of its ${promise(shown.slo_ms)}.` : "") : null);
}

const RULES = {
  state: "It is under way", run_at: "Its time has not come", queue_paused: "Paused", queue_blocked: "Blocked", window: "Its window is closed",
  kind_paused: "Its kind is paused", tenant_paused: "Its tenant is paused", limit: "At a limit", throttler: "The throttler is asked",
  over_share: "Its tenant has had its share", busy: "Every worker is busy",
};

function errorsCard(shown) {
  if (!shown.errors.length) return null;
  return card("Errors", `${shown.errors.length} kept, the newest first`,
    [...shown.errors].reverse().map((error, place) => h("details", { open: place === 0 },
      h("summary", {}, h("strong", { class: "bad" }, error.reason), ` in attempt ${error.attempt}, ${ago(error.at_ms)}, at ${clock(error.at_ms)}`),
      error.text ? h("pre", { tabindex: 0 }, error.text) : null)));
}

const TONES = { ack: "good", lease: "good", reply: "good", redrive: "good", retry: "bad", bury: "bad", lose: "bad", expire: "bad", cancel: "warn", cancel_request: "warn", release: "warn" };
const HAPPENED = {
  enqueue: () => "accepted", promote: () => "its time came: ready", reschedule: (d) => `put off until ${clock(d.run_at_ms)}`,
  lease: (d) => `started by ${d.worker || "a worker"}, attempt ${d.attempt}, after ${span(d.wait_ms)}${d.held_ms ? ` and ${span(d.held_ms)} held` : ""}`,
  extend: (d) => `lease extended to ${clock(d.lease_until_ms)}`, ack: (d) => `done after ${span(d.run_ms)}`,
  retry: (d) => `attempt ${d.attempt} ended: ${d.reason}; again at ${clock(d.run_at_ms)}`, release: () => "given back by its worker, unused",
  lose: (d) => `its worker was lost after ${span(d.run_ms)}`, wait: (d) => `waits for the reply ${d.reply_key}`,
  reply: (d) => `the reply ${d.reply_key} came${d.waited_ms ? ` after ${span(d.waited_ms)}` : ""}`, cancel: () => "cancelled",
  cancel_request: () => "cancel requested", expire: () => "its lifetime was over", bury: (d) => `to the dead letters: ${d.reason}`,
  redrive: () => "redriven, with fresh attempts", discard: () => "discarded",
};

function timelineCard(line) {
  if (line === null) return card("Timeline", null, h("p", { class: "empty" }, "The index does not know it yet."));
  return card("Timeline", line.next ? "the first 200 events" : null,
    h("ol", { class: "line" }, line.events.map((one) => h("li", { class: TONES[one.event] ?? "" },
      h("time", { datetime: new Date(one.at_ms).toISOString() }, clock(one.at_ms)),
      h("div", {}, (HAPPENED[one.event] ?? (() => one.event))(one.details),
        one.details.text ? h("div", { class: "soft small" }, one.details.text.split("\n")[0].slice(0, 300)) : null)))));
}

function factsCard(shown) {
  const labels = Object.entries(shown.labels ?? {}).map(([name, value]) => `${name}=${value}`).join(", ");
  const headers = Object.entries(shown.headers ?? {}).map(([name, value]) => `${name}: ${value}`).join(", ");
  return card("Facts", null, facts([
    ["Enqueued", `${clock(shown.enqueued_ms)} (${ago(shown.enqueued_ms)})`],
    ["Runs from", shown.run_at_ms ? clock(shown.run_at_ms) : null],
    ["Started", shown.started_ms ? `${clock(shown.started_ms)} (${ago(shown.started_ms)})` : null],
    ["Ended", shown.ended_ms ? clock(shown.ended_ms) : null],
    ["Attempt", shown.attempts_max ? `${shown.attempt} of ${shown.attempts_max}` : String(shown.attempt)],
    ["Worker", shown.worker], ["Lease ends", shown.lease_until_ms ? `${clock(shown.lease_until_ms)} (${ago(shown.lease_until_ms)})` : null],
    ["Reply key", shown.reply_key], ["Waits until", shown.wait_until_ms ? clock(shown.wait_until_ms) : null],
    ["Priority", shown.priority === null ? null : String(shown.priority)], ["Cost", shown.cost === null ? null : String(shown.cost)],
    ["Critical", shown.critical ? "yes: no limit stops it" : null],
    ["Labels", labels], ["Headers", headers], ["Redriven", shown.generation ? `${number(shown.generation)} times` : null],
    ["Expires", shown.expires_ms ? clock(shown.expires_ms) : null],
  ]));
}

function payloadCard(shown, payload, isWhole, showAll) {
  const note = shown.is_payload_changed ? "changed since it was sent" : null;
  if (payload === null && !shown.payload_base64) {
    return card("Payload", null, h("p", { class: "empty" }, "It is kept while a job is open or dead."));
  }
  const text = payload === null ? shown.payload_base64 : pretty(payload);
  const isLong = text.length > SHOWN && !isWhole;
  return card("Payload", payload === null ? "bytes, as base64" : note,
    h("pre", { tabindex: 0 }, isLong ? text.slice(0, SHOWN) : text),
    isLong ? h("p", {}, h("button", { class: "small", onclick: showAll }, `Show all ${number(text.length)} characters`)) : null);
}
