// All nodes of the cluster and its partitions: who serves what, and where it should be.

import { get, may, path, send } from "./api.js";
import { question } from "./dialogs.js";
import { badge, bar, card, field, h, options, part, table, tile } from "./dom.js";
import { ago, clock, number, several, span } from "./words.js";

const TONES = { alive: "good", draining: "warn", leaving: "warn", gone: "bad" };
const ANYWHERE = "";

export async function nodes(page) {
  const body = part("div");
  async function load() {
    const [told, held] = await Promise.all([get("v1/nodes"), get("v1/partitions")]);
    if (!page.isOpen()) return;
    const has = { nodes: told.nodes, partitions: held.partitions, isCluster: told.is_cluster,
      leaseMs: told.lease_ms, toldBy: told.told_by, again };
    body.show(verdict(has), tiles(has), nodesCard(has), partitionsCard(has));
  }
  const again = () => load().catch(() => {});
  await load();
  page.every(2000, again);
  return body.node;
}

function verdict({ nodes, partitions, isCluster }) {
  if (!isCluster) {
    return h("div", { class: "verdict good" }, h("span", { class: "light" }), h("div", {},
      h("h1", {}, "One server, and no cluster"),
      h("p", { class: "soft" }, "It serves its partition for as long as it runs. Nodes that share a database would be listed here.")));
  }
  const free = partitions.filter((one) => one.node === null).map((one) => one.partition);
  const gone = nodes.filter((one) => one.state === "gone").map((one) => one.name);
  const resting = nodes.filter((one) => one.state === "draining" || one.state === "leaving");
  const title = free.length ? `${names(free)} ${free.length === 1 ? "is" : "are"} served by nobody`
    : gone.length ? `${names(gone)} ${gone.length === 1 ? "is" : "are"} gone; every partition is served`
      : "Every node is there, and every partition is served";
  return h("div", { class: `verdict ${free.length ? "bad" : gone.length ? "warn" : "good"}` }, h("span", { class: "light" }), h("div", {},
    h("h1", {}, title),
    h("p", { class: "soft" },
      free.length ? "Requests for it wait for some seconds, and then fail. Another node takes over when the lease of the last one is over. "
        : `${several(nodes.length - gone.length, "node")} ${nodes.length - gone.length === 1 ? "shares" : "share"} ${several(partitions.length, "partition")}. `,
      resting.map((one) => `${one.name} is ${one.state}. `))));
}

function names(found) {
  return found.length > 3 ? `${found.slice(0, 3).join(", ")} and ${number(found.length - 3)} more` : found.join(", ");
}

function tiles({ nodes, partitions, isCluster, leaseMs }) {
  if (!isCluster) return null;
  const there = nodes.filter((one) => one.state !== "gone");
  const served = partitions.filter((one) => one.node !== null);
  const left = there.map((one) => one.lease_left_ms);
  const counts = there.filter((one) => one.state === "alive").map((one) => one.partitions.length);
  return h("div", { class: "tiles" },
    tile("Nodes", `${number(there.length)} of ${number(nodes.length)}`, "have a lease", null, there.length < nodes.length ? "warn" : ""),
    tile("Partitions", `${number(served.length)} of ${number(partitions.length)}`, "are served", null, served.length < partitions.length ? "bad" : ""),
    tile("For each node", counts.length ? spread(counts) : "–", "partitions"),
    tile("Shortest lease", left.length ? span(Math.min(...left)) : "–", `of ${span(leaseMs)}, renewed five times in it`));
}

function spread(counts) {
  const [least, most] = [Math.min(...counts), Math.max(...counts)];
  return least === most ? number(least) : `${number(least)} to ${number(most)}`;
}

function nodesCard(has) {
  const maySteer = has.isCluster && may("operate");
  return card("Nodes", has.isCluster ? "whoever is not heard of until its lease is over loses its partitions to the others" : null,
    table("Nodes", [
      ["Node", (one) => [one.name, one.name === has.toldBy ? [" ", badge("this one")] : null], "name wide"],
      ["State", (one) => badge(one.state, TONES[one.state])],
      ["Lease", (one) => lease(one, has.leaseMs), "nowrap aside"],
      ["Holds", (one) => number(one.partitions.length), "num"],
      ["Which", (one) => h("span", { class: "soft small" }, one.partitions.join(" ") || "none"), "wide aside"],
      ["Address", (one) => h("span", { class: "mono small" }, one.address || "–"), "wide aside"],
      ["Version", (one) => one.version, "nowrap aside"],
      ["Started", (one) => since(one.started_ms), "num aside"],
      maySteer ? ["", (one) => nodeButton(one, has), "num"] : null,
    ].filter(Boolean), has.nodes, "There is no node."));
}

function lease(one, leaseMs) {
  if (one.lease_left_ms === null) return h("span", { class: "soft" }, "needs none");
  if (one.state === "gone") return h("span", { class: "bad" }, "is over");
  const share = leaseMs ? one.lease_left_ms / leaseMs : 1;
  return h("span", { class: "meter short" }, span(one.lease_left_ms), bar(share, share < 0.3 ? "bad" : share < 0.55 ? "warn" : ""));
}

function since(at_ms) {
  return at_ms ? h("time", { datetime: new Date(at_ms).toISOString(), title: clock(at_ms) }, ago(at_ms)) : "–";
}

function nodeButton(one, has) {
  const isResting = one.state === "draining";
  if (one.state === "gone" || one.state === "leaving") return "";
  return h("button", { class: "small", "aria-label": `${isResting ? "Undrain" : "Drain"} ${one.name}`,
    onclick: () => (isResting ? undrain(one, has) : drain(one, has)) }, isResting ? "Undrain…" : "Drain…");
}

function drain(one, has) {
  const others = has.nodes.filter((other) => other.state === "alive" && other.name !== one.name);
  return question({
    title: `Drain ${one.name}?`,
    text: others.length
      ? `${several(one.partitions.length, "partition")} ${one.partitions.length === 1 ? "goes" : "go"} to ${names(others.map((other) => other.name))}, one after another; each is away for a moment. ${one.name} takes none until it is undrained.`
      : "There is no other node that could take its partitions: it keeps them until one joins.",
    verb: "Drain",
    act: async (_, reason) => {
      await send("POST", path("nodes", one.name, "drain"), undefined, reason);
      has.again();
      return `${one.name} drains.`;
    },
  });
}

function undrain(one, has) {
  return question({
    title: `Undrain ${one.name}?`, text: `${one.name} is given its share of the partitions again.`, verb: "Undrain", isDanger: false,
    act: async (_, reason) => {
      await send("POST", path("nodes", one.name, "undrain"), undefined, reason);
      has.again();
      return `${one.name} takes partitions again.`;
    },
  });
}

function partitionsCard(has) {
  const maySteer = has.isCluster && may("operate");
  const hasOthers = has.partitions.some((one) => one.database !== "");
  return card("Partitions", has.isCluster ? "each is served by one node at a time" : null,
    table("Partitions", [
      ["Partition", (one) => one.partition, "name"],
      ["Node", (one) => one.node ?? h("span", { class: "bad" }, "nobody"), "wide"],
      ["State", (one) => state(one)],
      ["Queues", (one) => number(one.queues), "num"],
      ["There since", (one) => one.node === null ? "–" : one.since_ms ? since(one.since_ms) : h("span", { class: "soft" }, "before this node"), "num aside"],
      hasOthers ? ["Database", (one) => one.database || "–", "wide aside"] : null,
      has.isCluster ? ["Kept at", (one) => one.pinned ?? h("span", { class: "soft" }, "anywhere"), "wide aside"] : null,
      maySteer ? ["", (one) => h("button", { class: "small", "aria-label": `Move ${one.partition}`, onclick: () => move(one, has) }, "Move…"), "num"] : null,
    ].filter(Boolean), has.partitions, "There is no partition."));
}

function state(one) {
  if (one.node === null) return badge(one.wanted ? `goes to ${one.wanted}` : "not served", one.wanted ? "warn" : "bad");
  if (one.pinned && one.pinned !== one.node) return badge(`wanted at ${one.pinned}`, "warn");
  return badge(one.state === "open" ? "served" : "closing", one.state === "open" ? "good" : "warn");
}

function move(one, has) {
  const takers = has.nodes.filter((node) => node.state === "alive");
  const choice = h("select", { name: "node" }, options(one.pinned ?? ANYWHERE,
    [[ANYWHERE, "wherever there is room"], ...takers.map((node) => [node.name, `${node.name} (has ${number(node.partitions.length)})`])]));
  return question({
    title: `Move ${one.partition}?`,
    text: `${one.node ?? "Nobody"} serves it now. Where you say it stays, for as long as that node serves; requests for it wait while it moves.`,
    fields: [field("Where it is to be", choice)], verb: "Move", isDanger: false,
    act: async (values, reason) => {
      const node = values.get("node") || null;
      await send("POST", path("partitions", one.partition, "move"), { node }, reason);
      has.again();
      return node ? `${one.partition} is to be at ${node}.` : `${one.partition} is left to the nodes.`;
    },
  });
}
