// Schedules: what is enqueued when, and what can be done about it.

import { get, may, path, send } from "./api.js";
import { act, question } from "./dialogs.js";
import { badge, card, h, link, part, table } from "./dom.js";
import { ago, clock } from "./words.js";

const MISSED = { skip: "missed ticks are left out", one: "missed ticks are made up by one", all: "missed ticks are all made up" };

export async function schedules(page) {
  const body = part("div");
  let cursors = [undefined];
  async function load() {
    const found = await get("v1/schedules", { after: cursors[cursors.length - 1], limit: 50 });
    if (!page.isOpen()) return;
    body.show(
      h("h1", {}, "Schedules"),
      h("p", { class: "soft" }, "Each enqueues a job at every tick of a cron expression, in its own time zone."),
      card("All queues", null, scheduleTable(found.schedules, again, true),
        cursors.length > 1 || found.next ? h("nav", { class: "pages", "aria-label": "Pages of this list" },
          h("button", { class: "small", disabled: cursors.length === 1, onclick: () => { cursors.pop(); again(); } }, "Back"),
          h("button", { class: "small", disabled: !found.next, onclick: () => { cursors = [...cursors, found.next]; again(); } }, "Next")) : null));
  }
  const again = () => load().catch(() => {});
  await load();
  page.every(5000, again);
  return body.node;
}

export function scheduleTable(rows, again, hasQueue = false) {
  return table("Schedules", [
    ["Name", (one) => [one.name, " ", one.is_paused ? badge("paused", "warn") : null], "name wide"],
    ...(hasQueue ? [["Queue", (one) => h("a", { href: link("queue", one.queue) }, one.queue), "wide"]] : []),
    ["Ticks", (one) => [h("span", { class: "mono nowrap" }, one.cron),
      h("div", { class: "soft small" }, `${one.zone}, ${MISSED[one.missed] ?? one.missed}`)], "wide"],
    ["Kind", (one) => one.kind || "–", "wide aside"],
    ["Last", (one) => ago(one.last_ms), "num aside"],
    ["Next", (one) => one.next_ms ? h("time", { datetime: new Date(one.next_ms).toISOString(), title: clock(one.next_ms) }, ago(one.next_ms)) : "–", "num"],
    ["", (one) => may("manage", one.queue) ? actions(one, again) : "", "num"],
  ], rows, "There is no schedule.");
}

function actions(one, again) {
  const at = path("queues", one.queue, "schedules", one.name);
  const quick = (verb, said) => () => act(async () => {
    await send("POST", `${at}/${verb}`);
    again();
    return said;
  });
  return h("span", { class: "actions" },
    one.is_paused
      ? h("button", { class: "small", onclick: quick("resume", `${one.name} goes on.`) }, "Resume")
      : h("button", { class: "small", onclick: quick("pause", `${one.name} is paused.`) }, "Pause"),
    h("button", { class: "small", onclick: () => runNow(one, at, again) }, "Run now…"),
    h("button", { class: "small danger", onclick: () => remove(one, at, again) }, "Remove…"));
}

function runNow(one, at, again) {
  return question({
    title: `Run ${one.name} now?`, text: "Its job is enqueued at once, beside its ticks.", verb: "Run now", isDanger: false,
    act: async (_, reason) => {
      const told = await send("POST", `${at}/run`, undefined, reason);
      again();
      return `It is job ${told.jobs[0].id}.`;
    },
  });
}

function remove(one, at, again) {
  return question({
    title: `Remove ${one.name}?`, text: "There will be no more ticks; jobs that it has enqueued stay. This can't be undone.", verb: "Remove",
    act: async (_, reason) => {
      await send("DELETE", at, undefined, reason);
      again();
      return `${one.name} is removed.`;
    },
  });
}
