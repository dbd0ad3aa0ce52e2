// This server and its partition, in figures.

import { get } from "./api.js";
import { bar, card, facts, h, part, tile } from "./dom.js";
import { ago, bytes, clock, number, rate, span } from "./words.js";

export async function node(page) {
  const body = part("div");
  async function load() {
    const told = await get("v1/node");
    if (!page.isOpen()) return;
    const full = told.jobs_in_memory / told.jobs_in_memory_max;
    const replies = Object.entries(told.replies).map(([fate, count]) => `${number(count)} ${fate}`).join(", ");
    body.show(
      h("h1", {}, "This node"),
      h("p", { class: "soft" }, `Partition ${told.partition}, version ${told.version}; watched since ${clock(told.since_ms)}.`),
      h("div", { class: "tiles" },
        tile("Commits", rate(told.commits_per_s), `${told.commit_ms.toFixed(1)} ms each, of late`),
        tile("Commands in a commit", told.commands_per_commit.toFixed(1), "they share one flush"),
        tile("Store", bytes(told.store_bytes), `and ${bytes(told.log_bytes)} of log`),
        tile("Memory", bytes(told.memory_bytes), "of this process")),
      h("div", { class: "two" },
        card("In memory", "a backlog costs disk: memory holds what is next",
          h("p", {}, `${number(told.jobs_in_memory)} of at most ${number(told.jobs_in_memory_max)} jobs, ${number(told.turns_in_memory)} turns`),
          bar(full, full > 0.95 ? "warn" : "plain")),
        card("Index of jobs", "searches and timelines come from it",
          told.indexed_to === null ? h("p", { class: "warn" }, "It is not there yet.")
            : h("p", {}, `Knows ${number(told.indexed_to)} events; the last happened ${ago(told.indexed_ms)}.`))),
      card("Also", null, facts([
        ["Queues and lanes", `${number(told.queues)} and ${number(told.lanes)}${told.queues >= 1000 ? " with figures of their own" : ""}`],
        ["Worker slots", `${number(told.slots_busy)} busy, ${number(told.slots_idle)} idle`],
        ["Replies that nobody waited for", replies || "none"],
        ["Ticks that were skipped", number(told.ticks_skipped)],
        ["Pages that look on", number(told.listeners)],
        ["These figures", `are ${span(Math.max(0, Date.now() - told.at_ms))} old`],
      ])));
  }
  await load();
  page.every(3000, () => load().catch(() => {}));
  return body.node;
}
