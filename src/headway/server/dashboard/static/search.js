// Finds jobs, open or over, in the index that follows what happens.

import { get } from "./api.js";
import { card, field, h, link, options, part } from "./dom.js";
import { jobTable } from "./jobs.js";
import { ago } from "./words.js";

const STATES = [["", "any"], ["ready", "ready"], ["scheduled", "scheduled"], ["leased", "running"], ["waiting", "waiting for a reply"],
  ["done", "done"], ["cancelled", "cancelled"], ["dead", "dead letter"]];
const TEXTS = [["queue", "Queue"], ["tenant", "Tenant"], ["kind", "Kind"], ["worker", "Worker"], ["label", "Label (name=value)"], ["reason", "Failed by (reason)"]];
const NAMES = [...TEXTS.map(([name]) => name), "state", "group", "by", "order"];

export async function search(page) {
  const given = page.query;
  const asked = Object.fromEntries(NAMES.filter((name) => given[name]).map((name) => [name, given[name]]));
  const list = part("div");
  const isAsked = Object.keys(asked).length > 0 || given.all === "yes";
  let cursors = [undefined];

  async function load() {
    if (!isAsked) return;
    const found = await get("v1/jobs", { ...asked, cursor: cursors[cursors.length - 1], limit: 50 });
    if (!page.isOpen()) return;
    list.show(card("Found", `the index is as of ${ago(found.indexed_ms)}`,
      jobTable("Jobs found", ["id", "state", "queue", "kind", "tenant", "enqueued", "attempt", "error"], found.jobs, "No job fits."),
      h("nav", { class: "pages", "aria-label": "Pages of this list" },
        h("button", { class: "small", disabled: cursors.length === 1, onclick: () => { cursors.pop(); load().catch(fail); } }, "Back"),
        h("button", { class: "small", disabled: !found.next, onclick: () => { cursors = [...cursors, found.next]; load().catch(fail); } }, "Next"))));
  }
  const fail = (error) => list.show(h("p", { class: "notice bad", role: "alert" }, error.message));

  await load().catch(fail);
  const submitted = (event) => {
    event.preventDefault();
    const form = Object.fromEntries(new FormData(event.target));
    const { id, ...values } = form;
    if (id.trim()) location.hash = link("job", id.trim());
    else page.go({ ...values, by: values.by === "enqueued" ? "" : values.by, order: values.order === "newest" ? "" : values.order, all: "yes" });
  };
  return h("div", {},
    h("h1", {}, "Search"),
    h("form", { class: "filters", role: "search", onsubmit: submitted },
      field("Job id", h("input", { name: "id", maxlength: 80, autocomplete: "off", placeholder: "p1_123" })),
      TEXTS.map(([name, label]) => field(label, h("input", { name, value: given[name] ?? "", maxlength: 256, autocomplete: "off" }))),
      field("State", h("select", { name: "state" }, options(given.state ?? "", STATES))),
      field("By", h("select", { name: "by" }, options(given.by ?? "enqueued", [["enqueued", "time of enqueue"], ["changed", "last change"]]))),
      field("Order", h("select", { name: "order" }, options(given.order ?? "newest", [["newest", "newest first"], ["oldest", "oldest first"]]))),
      h("button", { class: "main", type: "submit" }, "Search")),
    isAsked ? null : h("p", { class: "empty" }, "Say what you are looking for; with nothing said, the newest jobs are shown."),
    list.node);
}
