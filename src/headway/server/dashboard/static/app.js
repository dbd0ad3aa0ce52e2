// The frame: who is here, which page is open, and what is drawn again.

import { bearer, hasToken, may, setToken, whenSignedOut, whoAmI } from "./api.js";
import { dismiss } from "./dialogs.js";
import { h, part, say } from "./dom.js";
import { forget, watch, watchStatus } from "./live.js";
import { short } from "./words.js";
import { overview } from "./overview.js";
import { queues } from "./queues.js";
import { queue } from "./queue.js";
import { job } from "./job.js";
import { search } from "./search.js";
import { running, waiting } from "./running.js";
import { dead, deadQueue } from "./dead.js";
import { schedules } from "./schedules.js";
import { node } from "./node.js";
import { nodes } from "./nodes.js";
import { acts } from "./acts.js";
import { whatIf } from "./whatif.js";
import { signIn } from "./signin.js";

const PAGES = [
  ["", "Overview", overview],
  ["queues", "Queues", queues],
  ["search", "Search", search],
  ["running", "Running", running],
  ["waiting", "Waiting for replies", waiting],
  ["dead", "Dead letters", dead],
  ["schedules", "Schedules", schedules],
  ["acts", "Acts", acts],
  ["what-if", "What if", whatIf],
  ["nodes", "Nodes & partitions", nodes],
  ["node", "This node", node],
];
const INNER = { queue, job, dead: deadQueue };
const main = document.getElementById("main");
const side = part("header", { id: "side" });
document.getElementById("side").replaceWith(side.node);
let close = () => {};
let opened = 0;
let status = "";
let counts = null;

// "#/queue/mail?sort=name" as its parts and its query.
function place() {
  const [where, query] = location.hash.replace(/^#\/?/, "").split("?");
  const parts = where.split("/").map((text) => {
    try {
      return decodeURIComponent(text);
    } catch {
      return text;
    }
  });
  return { parts, query: Object.fromEntries(new URLSearchParams(query ?? "")) };
}

// From now on the page that is shown can only be looked at, and late answers that it asked
// for change nothing. Answers with the number of the page that comes.
function leave() {
  close();
  close = () => {};
  dismiss();
  main.inert = true;
  main.setAttribute("aria-busy", "true");
  delete main.dataset.page;
  return ++opened;
}

function show(shown) {
  main.replaceChildren(shown);
  main.inert = false;
  main.removeAttribute("aria-busy");
}

async function open(isFirst = false) {
  const number = leave();
  const { parts, query } = place();
  const inner = parts.length > 1 && parts[1] !== "" ? INNER[parts[0]] : undefined;
  const [, title, make] = PAGES.find(([name]) => name === parts[0]) ?? ["", "", null];
  const page = inner ?? make;
  drawSide(parts[0]);
  const stops = [];
  const context = {
    name: parts[1], query,
    // A page that was left while it was made has nothing to follow.
    every(ms, work) {
      if (number !== opened) return;
      const timer = setInterval(() => { if (!document.hidden && !document.querySelector("dialog[open]")) work(); }, ms);
      stops.push(() => clearInterval(timer));
    },
    live(then) { if (number === opened) stops.push(watch(then)); },
    isOpen: () => number === opened,
    go(values) {
      if (number !== opened) return;
      const filled = Object.entries(values).filter(([, value]) => value !== "" && value !== undefined && value !== null);
      location.hash = `#/${parts.map(encodeURIComponent).join("/")}${filled.length ? `?${new URLSearchParams(filled)}` : ""}`;
    },
    title(text) { document.title = `${text} · Headway`; },
  };
  close = () => stops.forEach((stop) => stop());
  document.title = title ? `${title} · Headway` : "Headway";
  let shown;
  try {
    shown = page ? await page(context) : h("h1", {}, "There is no such page");
  } catch (error) {
    shown = h("div", {}, h("h1", {}, failure(error)), h("p", { class: "soft" }, error.message),
      h("p", {}, h("button", { onclick: () => open() }, "Try again")));
  }
  if (number !== opened) return;
  document.body.classList.remove("alone");
  show(shown);
  main.dataset.page = parts[0] || "overview";
  if (!isFirst) {
    window.scrollTo(0, 0);
    const heading = main.querySelector("h1");
    heading?.setAttribute("tabindex", "-1");
    heading?.focus();
  }
}

function failure(error) {
  if (error.status === 404) return "It is not here";
  if (error.status === 403) return "Your token does not allow this";
  return "This could not be loaded";
}

function drawSide(current) {
  const me = bearer();
  side.show(
    h("a", { class: "brand", href: "#/" }, h("img", { src: "dashboard/icon.svg", alt: "" }), "Headway"),
    h("nav", { "aria-label": "Pages" }, PAGES.map(([name, title]) =>
      name === "what-if" && !may("operate") ? null : h("a", {
        href: `#/${name}`,
        "aria-current": (current === name || (current === "queue" && name === "queues") || (current === "job" && name === "search")) ? "page" : null,
      }, title, badgeOf(name)))),
    h("div", { class: "foot" },
      h("div", { class: "row" }, h("span", { "data-live": status }, status === "live" ? "● live" : `○ ${status}`)),
      h("div", { class: "row node" }, me ? `${me.partition} · ${me.version}` : ""),
      h("div", { class: `row ${me?.is_open ? "who" : ""}` },
        h("span", {}, me?.is_open ? "open on this machine" : me?.name ?? ""),
        me && !me.is_open ? h("button", { class: "plain", onclick: signOut }, "Sign out") : null),
      h("div", { class: "row" }, h("button", { class: "plain", onclick: turnTheme, "aria-label": "Switch between light and dark" }, "◐ Theme"))));
}

function badgeOf(name) {
  const count = { dead: counts?.dead, waiting: counts?.waiting, running: counts?.leased }[name];
  return count ? h("span", { class: `count ${name === "dead" ? "bad" : ""}` }, short(count)) : null;
}

function turnTheme() {
  const root = document.documentElement;
  const isDark = root.dataset.theme
    ? root.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = isDark ? "light" : "dark";
  try {
    localStorage.setItem("headway-theme", root.dataset.theme);
  } catch {
    // It holds for this page, then.
  }
}

function signOut() {
  setToken(null);
  forget();
  location.reload();
}

async function start() {
  try {
    await whoAmI();
  } catch (error) {
    if (error.status === 401 || error.status === 403) showSignIn(error.status === 403 ? error.message : "");
    else {
      main.replaceChildren(h("div", {}, h("h1", {}, "The server does not answer"),
        h("p", { class: "soft" }, error.message),
        h("p", {}, h("button", { onclick: () => location.reload() }, "Try again"))));
    }
    return;
  }
  await open(true);
  watchStatus((now) => {
    status = now;
    drawSide(place().parts[0]);
  });
  watch((told) => {
    counts = told.counts;
    drawSide(place().parts[0]);
  });
}

function showSignIn(wrong) {
  leave();
  document.body.classList.add("alone");
  side.show();
  show(signIn(wrong, async (token) => {
    setToken(token);
    try {
      await whoAmI();
    } catch (error) {
      setToken(null);
      throw error;
    }
    location.reload();
  }));
}

whenSignedOut(() => {
  if (hasToken() && bearer()) {
    setToken(null);
    say("Your token is not good any more.");
    showSignIn("");
  }
});
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault(); // The place in the address is that of a page.
  main.focus();
});
window.addEventListener("hashchange", () => { if (bearer()) open(); });
start();
