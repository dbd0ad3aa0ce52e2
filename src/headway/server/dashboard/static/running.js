// Jobs in the hands of workers, and jobs that wait for a reply and hold no worker.

import { get, may, path, sendText } from "./api.js";
import { question } from "./dialogs.js";
import { card, field, h, link, part, table } from "./dom.js";
import { jobTable } from "./jobs.js";
import { ago, number, several, span } from "./words.js";

export async function running(page) {
  const { queue, holding, value, worker } = page.query;
  const body = part("div");
  let after;

  async function load() {
    const workers = holding || worker !== undefined ? null : await get("v1/workers", { queue, after });
    const jobs = await get("v1/running", {
      queue, worker, holding, value, limit: 100, state: holding ? "" : "leased",
    });
    if (!page.isOpen()) return;
    body.show(
      h("h1", {}, title(page.query)),
      h("p", { class: "soft" }, subtitle(page.query), queue || worker !== undefined ? [" ", h("a", { href: "#/running" }, "Show everything that runs.")] : ""),
      workers ? workersCard(workers, queue, (next) => { after = next; again(); }) : null,
      card(holding ? "Jobs that hold it" : "Jobs", jobs.next ? "the 100 oldest" : "the oldest first",
        jobTable("Running jobs", ["id", "queue", "kind", "tenant", "started", "worker", "attempt", "lease"], jobs.jobs, "Nothing runs.")));
  }
  const again = () => load().catch(() => {});

  await load();
  page.every(2000, again);
  return body.node;
}

function title({ queue, holding, value, worker }) {
  if (holding) return `Who holds ${holding}${value ? ` of ${value}` : ""} in ${queue}`;
  if (worker !== undefined) return `What ${worker || "the worker without a name"} runs`;
  return queue ? `Running in ${queue}` : "Running";
}

function subtitle({ holding }) {
  return holding ? "These jobs run, or wait for a reply, and have the units that others wait for." : "Jobs in the hands of workers.";
}

function workersCard(found, queue, turn) {
  return card(several(found.total, "busy worker"), null,
    table("Workers", [
      ["Worker", (one) => h("a", { href: `#/running?${new URLSearchParams({ worker: one.worker, ...(queue ? { queue } : {}) })}` }, one.worker || "without a name"), "name wide"],
      ["Jobs", (one) => number(one.jobs), "num"],
      ["Longest run", (one) => [span(Date.now() - one.oldest_ms), " ", h("a", { class: "mono small", href: link("job", one.oldest) }, one.oldest)], "num"],
      ["First lease ends", (one) => ago(one.lease_until_ms), "num aside"],
    ], found.workers, "No worker has a job."),
    found.next ? h("nav", { class: "pages", "aria-label": "Pages of this list" }, h("button", { class: "small", onclick: () => turn(found.next) }, "Next")) : null);
}

export async function waiting(page) {
  const { queue } = page.query;
  const body = part("div");
  let cursors = [undefined];

  async function load() {
    const found = await get("v1/running", { queue, state: "waiting", after: cursors[cursors.length - 1], limit: 50 });
    if (!page.isOpen()) return;
    body.show(
      h("h1", {}, queue ? `Waiting for replies in ${queue}` : "Waiting for replies"),
      h("p", { class: "soft" }, "These jobs hold no worker. A reply by its key lets one go on; without it, it ends when its wait does."),
      card("Jobs", "the oldest first",
        jobTable("Jobs that wait", ["id", "queue", "kind", "tenant",
          ["Reply key", (job) => h("span", { class: "mono" }, job.reply_key ?? "–"), "wide"],
          ["Gives up", (job) => ago(job.wait_until_ms), "num"],
          ["", (job) => may("reply", job.queue) ? h("button", { class: "small", "aria-label": `Reply to ${job.id}`, onclick: () => reply(job, again) }, "Reply…") : "", "num"],
        ], found.jobs, "No job waits for a reply."),
        cursors.length > 1 || found.next ? h("nav", { class: "pages", "aria-label": "Pages of this list" },
          h("button", { class: "small", disabled: cursors.length === 1, onclick: () => { cursors.pop(); again(); } }, "Back"),
          h("button", { class: "small", disabled: !found.next, onclick: () => { cursors = [...cursors, found.next]; again(); } }, "Next")) : null));
  }
  const again = () => load().catch(() => {});

  await load();
  page.every(3000, again);
  return body.node;
}

function reply(job, again) {
  const text = h("textarea", { name: "payload", spellcheck: "false" });
  text.value = "{}";
  return question({
    title: `Reply to ${job.id}?`,
    text: `The job gets this as the answer to ${job.reply_key}, and goes on. It can't be taken back.`,
    fields: [field("Reply as JSON", text)], verb: "Reply",
    act: async (_, reason) => {
      JSON.parse(text.value);
      await sendText("POST", path("queues", job.queue, "replies", job.reply_key), `{"payload":${text.value}}`, reason || "by hand");
      again();
      return "The reply is given.";
    },
  });
}
