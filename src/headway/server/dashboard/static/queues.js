// All queues, a page at a time: the server filters and sorts.

import { get } from "./api.js";
import { badge, bar, card, field, h, link, options, part, table } from "./dom.js";
import { number, promise, short, span } from "./words.js";

const SIZE = 50;
const SORTS = [["trouble", "trouble first"], ["name", "name"], ["ready", "ready"], ["leased", "running"],
  ["scheduled", "scheduled"], ["waiting", "waiting"], ["dead", "dead letters"]];

export async function queues(page) {
  const { contains = "", sort = "trouble", held = "" } = page.query;
  const skip = Math.max(0, Number.parseInt(page.query.skip ?? "0", 10) || 0);
  const list = part("div");
  const ask = (values) => page.go({ contains, sort, held, ...values });
  const by = (order) => ({ is: sort === order ? (order === "name" ? "ascending" : "descending") : null, go: () => ask({ sort: order }) });

  async function load() {
    const found = await get("v1/ranking", { contains, sort, held, skip, limit: SIZE });
    if (!page.isOpen()) return;
    list.show(card(`${number(found.total)} ${found.total === 1 ? "queue" : "queues"}`, sortWords(sort),
      table("Queues", [
        ["Queue", name, "name wide", by("name")],
        ["Promises", (one) => one.slos_ms.map(promise).join(", ") || "–", "nowrap aside"],
        ["Oldest wait", oldest],
        ["Ready", (one) => short(one.counts.ready), "num", by("ready")],
        ["Running", (one) => short(one.counts.leased), "num", by("leased")],
        ["Scheduled", (one) => short(one.counts.scheduled), "num aside", by("scheduled")],
        ["Waiting", (one) => short(one.counts.waiting), "num aside", by("waiting")],
        ["Dead", (one) => one.counts.dead ? h("a", { class: "bad", href: link("dead", one.name) }, short(one.counts.dead)) : "0", "num", by("dead")],
      ], found.queues, contains || held ? "No queue fits." : "There is no queue yet."),
      pages(found, skip, (to) => ask({ skip: to || "" }))));
  }

  await load();
  page.every(5000, () => load().catch(() => {}));
  const submitted = (event) => {
    event.preventDefault();
    const form = new FormData(event.target);
    ask({ contains: form.get("contains"), sort: form.get("sort"), held: form.get("held") ?? "" });
  };
  return h("div", {},
    h("h1", {}, "Queues"),
    h("form", { class: "filters", role: "search", onsubmit: submitted },
      field("Name contains", h("input", { name: "contains", value: contains, maxlength: 128, autocomplete: "off" })),
      field("Order", h("select", { name: "sort" }, options(sort, SORTS))),
      h("label", { class: "check" }, h("input", { type: "checkbox", name: "held", value: "yes", checked: held === "yes" }), "paused or blocked"),
      h("button", { type: "submit" }, "Show")),
    list.node);
}

function sortWords(sort) {
  return sort === "trouble" ? "those closest to breaking a promise first" : `by ${SORTS.find(([one]) => one === sort)?.[1] ?? sort}`;
}

function name(one) {
  return [h("a", { href: link("queue", one.name) }, one.name), " ",
    one.is_blocked ? badge("blocked", "bad") : null, one.is_paused ? badge("paused", "warn") : null,
    one.due ? badge("due", "warn") : null];
}

function oldest(one) {
  if (one.oldest_ms === null || !one.counts.ready || !one.slos_ms.length) return h("span", { class: "soft" }, "–");
  const share = one.oldest_ms / one.slos_ms[one.slos_ms.length - 1];
  const style = share > 1 ? "bad" : share > 0.8 ? "warn" : "";
  return h("span", { class: "meter" }, h("span", { class: style }, span(one.oldest_ms)), bar(share, style));
}

export function pages(found, skip, go) {
  const last = skip + found.queues.length;
  if (skip === 0 && last >= found.total) return null;
  return h("nav", { class: "pages", "aria-label": "Pages of this list" },
    `${number(skip + 1)} to ${number(last)} of ${number(found.total)}`,
    h("button", { class: "small", disabled: skip === 0, onclick: () => go(Math.max(0, skip - SIZE)) }, "Back"),
    h("button", { class: "small", disabled: last >= found.total, onclick: () => go(skip + SIZE) }, "Next"));
}
