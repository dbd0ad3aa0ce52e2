// One wait for news that all parts of the page share; nobody waits while it is hidden.

import { get } from "./api.js";

const watchers = new Set();
let last = null;
let isRunning = false;
let status = "starting";
const statusWatchers = new Set();

export function watch(then) {
  watchers.add(then);
  if (last !== null) then(last);
  run();
  return () => watchers.delete(then);
}

export function watchStatus(then) {
  statusWatchers.add(then);
  then(status);
}

function become(now) {
  if (status === now) return;
  status = now;
  for (const then of statusWatchers) then(status);
}

async function run() {
  if (isRunning) return;
  isRunning = true;
  let pause = 500;
  while (watchers.size) {
    if (document.hidden) {
      become("paused");
      await new Promise((go) => document.addEventListener("visibilitychange", go, { once: true }));
      continue;
    }
    try {
      const told = await get("v1/live", { after: last?.number ?? 0 });
      pause = 500;
      become("live");
      last = told;
      for (const then of watchers) then(told);
    } catch (error) {
      if (error.status === 401 || error.status === 403) break;
      become("reconnecting");
      last = null;
      await new Promise((go) => setTimeout(go, pause));
      pause = Math.min(pause * 2, 10_000);
    }
  }
  isRunning = false;
}

export function forget() {
  last = null;
  watchers.clear();
}
