// Numbers and times as people read them.

const STATES = { leased: "running", waiting: "waiting for a reply", dead: "dead letter" };

export function number(value) {
  return value === null || value === undefined ? "–" : Math.round(value).toLocaleString("en");
}

export function short(value) {
  if (value === null || value === undefined) return "–";
  for (const [size, unit] of [[1e9, "G"], [1e6, "M"], [1e4, "k"]]) {
    if (value >= size) {
      const scaled = value / (unit === "k" ? 1e3 : size);
      return `${scaled >= 100 ? Math.round(scaled) : scaled.toFixed(1).replace(/\.0$/, "")} ${unit}`;
    }
  }
  return number(value);
}

export function rate(value) {
  if (!value) return "0/s";
  return `${value >= 10 ? Math.round(value).toLocaleString("en") : value.toFixed(1)}/s`;
}

// Cut, not rounded: what is not all must not look like all.
export function percent(share) {
  if (share === null || share === undefined) return "–";
  return `${(Math.floor(share * 1000 + 1e-9) / 10).toString()} %`;
}

export function tone(share) {
  if (share === null || share === undefined) return "";
  return share >= 0.999 ? "good" : share >= 0.95 ? "warn" : "bad";
}

export function span(ms) {
  if (ms === null || ms === undefined) return "–";
  const sign = ms < 0 ? "−" : "";
  const value = Math.abs(ms);
  if (value < 1000) return `${sign}${Math.round(value)} ms`;
  if (value < 10_000) return `${sign}${(value / 1000).toFixed(1).replace(/\.0$/, "")} s`;
  if (value < 120_000) return `${sign}${Math.round(value / 1000)} s`;
  if (value < 7_200_000) return `${sign}${Math.round(value / 60_000)} min`;
  if (value < 172_800_000) return `${sign}${Math.round(value / 3_600_000)} h`;
  return `${sign}${Math.round(value / 86_400_000)} d`;
}

export function promise(ms) {
  for (const [size, unit] of [[86_400_000, "d"], [3_600_000, "h"], [60_000, "min"], [1000, "s"]]) {
    if (ms >= size && ms % size === 0) return `${ms / size} ${unit}`;
  }
  return span(ms);
}

export function ago(at_ms) {
  if (!at_ms) return "–";
  const passed = Date.now() - at_ms;
  return passed < 0 ? `in ${span(-passed)}` : passed < 1500 ? "just now" : `${span(passed)} ago`;
}

export function clock(at_ms) {
  if (!at_ms) return "–";
  const date = new Date(at_ms);
  const isToday = date.toDateString() === new Date().toDateString();
  const time = date.toLocaleTimeString("en-GB");
  return isToday ? time : `${date.toLocaleDateString("en-CA")} ${time}`;
}

export function hour(at_ms) {
  return new Date(at_ms).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
}

export function bytes(value) {
  for (const [size, unit] of [[2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]]) {
    if (value >= size) return `${(value / size).toFixed(value >= 100 * size ? 0 : 1)} ${unit}`;
  }
  return `${value} B`;
}

export function stateName(state) {
  return STATES[state] ?? state;
}

export function stateTone(state) {
  return { dead: "bad", done: "good", leased: "good", waiting: "warn" }[state] ?? "";
}

export function several(count, word) {
  return `${number(count)} ${word}${count === 1 ? "" : "s"}`;
}

export function tenantName(name) {
  return name === "" ? "no tenant" : name;
}
