// Dead letters: what they died of, and back with them or away.

import { get, may, path, send } from "./api.js";
import { later } from "./dialogs.js";
import { card, field, h, link, part, table } from "./dom.js";
import { jobTable } from "./jobs.js";
import { operationsCard } from "./operations.js";
import { pages } from "./queues.js";
import { ago, number, several, short } from "./words.js";

const MOST = 1000;

export async function dead(page) {
  const skip = Math.max(0, Number.parseInt(page.query.skip ?? "0", 10) || 0);
  const body = part("div");
  async function load() {
    const found = await get("v1/ranking", { sort: "dead", limit: 50, skip });
    if (!page.isOpen()) return;
    const some = found.queues.filter((one) => one.counts.dead);
    body.show(
      h("h1", {}, "Dead letters"),
      h("p", { class: "soft" }, "Jobs that will not run again by themselves. They keep their payload, errors and attempts."),
      card("By queue", "most first", table("Queues with dead letters", [
        ["Queue", (one) => h("a", { href: link("dead", one.name) }, one.name), "name wide"],
        ["Dead letters", (one) => h("span", { class: "bad" }, short(one.counts.dead)), "num"],
        ["Ready", (one) => short(one.counts.ready), "num"],
      ], some, "There are none. Every job has ended well, or is still trying."),
      some.length === found.queues.length ? pages(found, skip, (to) => page.go({ skip: to || "" })) : null));
  }
  await load();
  page.every(5000, () => load().catch(() => {}));
  return body.node;
}

export async function deadQueue(page) {
  const name = page.name;
  page.title(`Dead letters of ${name}`);
  const { tenant, kind, reason, text } = page.query;
  const which = Object.fromEntries(Object.entries({ tenant, kind, reason, text }).filter(([, value]) => value));
  const isFiltered = Object.keys(which).length > 0;
  const body = part("div");
  let cursors = [undefined];

  async function load() {
    const [groups, list, operations] = await Promise.all([
      get(path("queues", name, "dead", "groups")).catch(() => ({ groups: [] })),
      get(path("queues", name, "dead"), { ...which, cursor: cursors[cursors.length - 1], limit: 25 }),
      get("v1/operations"),
    ]);
    if (!page.isOpen()) return;
    const mine = operations.operations.filter((one) => one.queue === name);
    body.show(
      groupsCard(name, groups.groups, again),
      mine.length ? operationsCard(mine, again) : null,
      card(isFiltered ? "Those that fit" : "All of them", "in the order of their death",
        may("manage", name) ? h("div", { class: "actions" },
          h("button", { onclick: () => bulk(name, "redrive", which, again) }, isFiltered ? "Redrive those that fit…" : "Redrive all…"),
          h("button", { class: "danger", onclick: () => bulk(name, "discard", which, again) }, isFiltered ? "Discard those that fit…" : "Discard all…")) : null,
        jobTable("Dead letters", ["id", "kind", "tenant", "attempt", "error",
          ["Died", (job) => ago(job.errors[job.errors.length - 1]?.at_ms), "num"]], list.jobs, "There are none."),
        cursors.length > 1 || list.next ? h("nav", { class: "pages", "aria-label": "Pages of this list" },
          h("button", { class: "small", disabled: cursors.length === 1, onclick: () => { cursors.pop(); again(); } }, "Back"),
          h("button", { class: "small", disabled: !list.next, onclick: () => { cursors = [...cursors, list.next]; again(); } }, "Next")) : null));
  }
  const again = () => load().catch(() => {});

  await load();
  page.every(4000, again);
  const submitted = (event) => {
    event.preventDefault();
    page.go(Object.fromEntries(new FormData(event.target)));
  };
  return h("div", {},
    h("h1", {}, "Dead letters of ", h("a", { href: link("queue", name) }, name)),
    h("form", { class: "filters", role: "search", onsubmit: submitted },
      [["text", "Error contains"], ["tenant", "Tenant"], ["kind", "Kind"], ["reason", "Reason"]].map(([key, label]) =>
        field(label, h("input", { name: key, value: page.query[key] ?? "", maxlength: 128, autocomplete: "off" }))),
      h("button", { type: "submit" }, "Show")),
    body.node);
}

function groupsCard(name, groups, again) {
  const mine = may("manage", name);
  return card("What they died of", "errors that differ in numbers and ids only are one group",
    table("Groups of dead letters", [
      ["Error", (one) => [h("strong", { class: "bad" }, one.reason), one.line ? `: ${one.line}` : ""], "wide"],
      ["Count", (one) => h("a", { href: `#/search?${new URLSearchParams({ queue: name, state: "dead", group: one.group })}` }, number(one.count)), "num"],
      ["Last", (one) => [ago(one.last_ms), " ", h("a", { class: "mono small", href: link("job", one.example) }, one.example)], "num"],
      ["", (one) => mine ? h("span", { class: "actions" },
        h("button", { class: "small", onclick: () => group(name, "redrive", one, again) }, "Redrive…"),
        h("button", { class: "small danger", onclick: () => group(name, "discard", one, again) }, "Discard…")) : "", "num"],
    ], groups, "No group is known."));
}

// The index knows who is in a group; the server is told whom we mean, one by one.
async function group(name, verb, one, again) {
  const ask = later();
  const found = await get("v1/jobs", { queue: name, state: "dead", group: one.group, limit: MOST });
  const ids = found.jobs.map((job) => job.id);
  if (ids.length) await bulk(name, verb, { ids }, again, ask, found.next ? `These are the newest ${number(MOST)} of ${number(one.count)}: repeat it for the others.` : "");
}

async function bulk(name, verb, which, again, ask = later(), note = "") {
  let preview = null;
  try {
    preview = await send("POST", path("queues", name, "dead", verb), { filter: which, preview: true });
  } catch (error) {
    preview = { matched: 0, sample: [], error };
  }
  const rate = h("input", { name: "rate", type: "number", min: "0.001", max: "1000000", step: "any" });
  const verbs = { redrive: "Redrive", discard: "Discard" };
  const count = `${preview.is_more ? "at least " : ""}${several(preview.matched, "dead letter")}`;
  await ask({
    title: `${verbs[verb]} ${count}?`,
    text: h("div", {},
      h("p", { class: "soft" }, verb === "redrive" ? "They go back to their queue with fresh attempts." : "They are deleted for good; their history stays. This can't be undone.", note ? ` ${note}` : ""),
      preview.error ? h("p", { class: "bad" }, preview.error.message) : null,
      preview.sample.length ? h("p", { class: "small soft" }, "Among them: ", preview.sample.slice(0, 5).map((job, place) =>
        [place ? ", " : "", h("a", { class: "mono", href: link("job", job.id) }, job.id)])) : null),
    fields: [field("At most so many a second (empty: as fast as it goes)", rate)],
    verb: verbs[verb], isDanger: verb === "discard",
    act: async (form, reason) => {
      const most = form.get("rate") === "" ? {} : { rate: Number(form.get("rate")) };
      await send("POST", path("queues", name, "dead", verb), { filter: which, ...most }, reason);
      again();
      return "It has begun.";
    },
  });
}
