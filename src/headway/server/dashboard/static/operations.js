// Bulk operations: how far they are, and a way to stop them.

import { may, path, send } from "./api.js";
import { question } from "./dialogs.js";
import { badge, bar, card, h, link, table } from "./dom.js";
import { ago, number } from "./words.js";

export function operationsCard(operations, again) {
  const stop = (one) => () => question({
    title: `Stop the ${one.verb} of ${one.queue}?`, text: "What it has done stays done.", verb: "Stop",
    act: async (_, reason) => {
      await send("POST", path("operations", String(one.id), "stop"), undefined, reason);
      again();
      return "It has stopped.";
    },
  });
  return card("Bulk operations", "they go on by themselves, over restarts",
    table("Bulk operations", [
      ["What", (one) => `${one.verb}, number ${one.id}`],
      ["Queue", (one) => h("a", { href: link("queue", one.queue) }, one.queue), "wide"],
      ["State", (one) => badge(one.state, one.state === "running" ? "warn" : "")],
      ["Done", (one) => h("span", { class: "meter" }, `${number(one.done)}${one.total === null ? "" : ` of ${number(one.total)}`}${one.failed ? `, ${number(one.failed)} had moved on` : ""}`,
        one.total ? bar((one.done + one.failed) / one.total, "plain") : null)],
      ["Rate", (one) => one.rate ? `${one.rate}/s` : "as it comes", "num aside"],
      ["Begun", (one) => ago(one.started_ms), "num aside"],
      ["", (one) => one.state === "running" && may("manage", one.queue) ? h("button", { class: "small danger", onclick: stop(one) }, "Stop…") : "", "num"],
    ], operations));
}
