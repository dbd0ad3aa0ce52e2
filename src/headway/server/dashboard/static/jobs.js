// Lists of jobs, as several pages show them.

import { badge, h, link, table } from "./dom.js";
import { ago, span, stateName, stateTone, tenantName } from "./words.js";

export const COLUMNS = {
  id: ["Job", (job) => h("a", { class: "mono", href: link("job", job.id) }, job.id), "nowrap"],
  queue: ["Queue", (job) => h("a", { href: link("queue", job.queue) }, job.queue), "wide"],
  state: ["State", (job) => badge(stateName(job.state), stateTone(job.state))],
  kind: ["Kind", (job) => job.kind || "–", "wide"],
  tenant: ["Tenant", (job) => h("span", { class: job.tenant ? "" : "soft" }, tenantName(job.tenant)), "wide"],
  enqueued: ["Enqueued", (job) => ago(job.enqueued_ms), "num aside"],
  started: ["Running for", (job) => job.started_ms ? span(Date.now() - job.started_ms) : "–", "num"],
  lease: ["Lease ends", (job) => ago(job.lease_until_ms), "num aside"],
  worker: ["Worker", (job) => job.worker || "–", "wide aside"],
  attempt: ["Attempt", (job) => job.attempts_max ? `${job.attempt} of ${job.attempts_max}` : String(job.attempt), "num aside"],
  error: ["Last error", (job) => lastError(job), "wide"],
};

export function lastError(job) {
  const last = job.errors?.[job.errors.length - 1];
  if (!last) return "–";
  const text = last.text.split("\n")[0].slice(0, 160);
  return [h("span", { class: "bad" }, last.reason), text ? `: ${text}` : ""];
}

export function jobTable(caption, columns, jobs, empty) {
  return table(caption, columns.map((one) => (typeof one === "string" ? COLUMNS[one] : one)), jobs, empty);
}
