// What operators did: who, when, what and why.

import { get } from "./api.js";
import { card, h, link, part, table } from "./dom.js";
import { ago, clock } from "./words.js";

const WORDS = {
  queues_put: "set the rules", queues_patch: "changed rules", queues_pause: "paused it", queues_resume: "resumed it",
  queues_block: "blocked it", queues_unblock: "lifted the block", queues_set_tenant: "set rules of a tenant", queues_set_kind: "set rules of a kind",
  dead_redrive: "redrove dead letters", dead_discard: "discarded dead letters", dead_purge: "purged it", dead_redrive_one: "redrove",
  jobs_cancel: "cancelled", work_reply: "replied to a job", operations_stop: "stopped a bulk operation", schedules_put: "set a schedule", schedules_drop: "removed a schedule",
  schedules_pause: "paused a schedule", schedules_resume: "resumed a schedule", schedules_run_now: "ran a schedule at once",
  nodes_drain: "drained node", nodes_undrain: "undrained node", nodes_move: "moved partition",
};

export function actWords(one) {
  const named = Object.values(one.named).join(", ");
  const said = one.said === null || one.what === "queues_put" ? "" : JSON.stringify(one.said, (_, value) => value ?? undefined);
  return [WORDS[one.what] ?? one.what, named ? ` ${named}` : "",
    one.job ? [" ", h("a", { class: "mono", href: link("job", one.job) }, one.job)] : "",
    said && said !== "{}" ? h("span", { class: "soft small mono" }, ` ${said.slice(0, 200)}`) : null];
}

export async function acts(page) {
  const body = part("div");
  let cursors = [undefined];
  async function load() {
    const found = await get("v1/acts", { before: cursors[cursors.length - 1], limit: 50 });
    if (!page.isOpen()) return;
    body.show(
      h("h1", {}, "Acts"),
      h("p", { class: "soft" }, "Everything that somebody did to queues, jobs, schedules and nodes, and why, if they said so."),
      card("The newest first", null, table("Acts", [
        ["When", (one) => h("time", { datetime: new Date(one.at_ms).toISOString(), title: clock(one.at_ms) }, ago(one.at_ms)), "nowrap"],
        ["Who", (one) => one.who, "wide"],
        ["Queue", (one) => one.queue ? h("a", { href: link("queue", one.queue) }, one.queue) : "–", "wide"],
        ["What", actWords, "wide"],
        ["Why", (one) => one.reason || h("span", { class: "soft" }, "not said"), "wide"],
      ], found.acts, "Nobody has done anything yet."),
      cursors.length > 1 || found.next ? h("nav", { class: "pages", "aria-label": "Pages of this list" },
        h("button", { class: "small", disabled: cursors.length === 1, onclick: () => { cursors.pop(); again(); } }, "Back"),
        h("button", { class: "small", disabled: !found.next, onclick: () => { cursors = [...cursors, found.next]; again(); } }, "Next")) : null));
  }
  const again = () => load().catch(() => {});
  await load();
  page.every(5000, again);
  return body.node;
}
