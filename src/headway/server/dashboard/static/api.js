// Asks the server. A token lives in this tab alone, and goes out in one header.

const KEY = "headway-token";
const listeners = { signIn: () => {} };
let token = read();
let me = null;

function read() {
  try {
    return sessionStorage.getItem(KEY);
  } catch {
    return null;
  }
}

export class Problem extends Error {
  constructor(status, told) {
    super([told.title, told.key, told.detail].filter(Boolean).join(": ") || `The server says ${status}`);
    this.status = status;
    this.code = told.code ?? "";
  }
}

export function whenSignedOut(then) {
  listeners.signIn = then;
}

export function setToken(given) {
  token = given;
  try {
    if (given === null) sessionStorage.removeItem(KEY);
    else sessionStorage.setItem(KEY, given);
  } catch {
    // Without storage it is good until the page is loaded again.
  }
}

export function hasToken() {
  return token !== null;
}

export function bearer() {
  return me;
}

export async function whoAmI() {
  me = await get("v1/me");
  return me;
}

// Whether a button is worth offering; the server decides again.
export function may(verb, queue) {
  return (me?.scopes ?? []).some((scope) => {
    const [word, pattern] = scope.split(":");
    if (word !== verb) return false;
    if (pattern === "*") return true;
    if (queue === undefined || queue === null) return false;
    return pattern.endsWith("*") ? queue.startsWith(pattern.slice(0, -1)) : queue === pattern;
  });
}

export function path(...parts) {
  return ["v1", ...parts.map(encodeURIComponent)].join("/");
}

export function get(where, query, signal) {
  const values = Object.entries(query ?? {})
    .filter(([, value]) => value !== undefined && value !== null && value !== "");
  const search = new URLSearchParams(values.map(([name, value]) => [name, String(value)]));
  return ask("GET", values.length ? `${where}?${search}` : where, undefined, {}, signal);
}

export function getText(where, signal) {
  return ask("GET", where, undefined, {}, signal, true);
}

export function send(method, where, body, reason) {
  const headers = reason ? { "Headway-Reason": encodeURIComponent(reason) } : {};
  return ask(method, where, body === undefined ? undefined : JSON.stringify(body), headers);
}

// A body that is sent as it was written: numbers keep all of their digits.
export function sendText(method, where, text, reason) {
  const headers = reason ? { "Headway-Reason": encodeURIComponent(reason) } : {};
  return ask(method, where, text, headers);
}

async function ask(method, where, body, headers, signal, isText = false) {
  const sent = { ...headers };
  if (token !== null) sent.Authorization = `Bearer ${token}`;
  if (body !== undefined) sent["Content-Type"] = "application/json";
  const answer = await fetch(where, {
    method, headers: sent, body, signal, cache: "no-store", credentials: "omit", redirect: "error",
  });
  if (answer.ok && isText) return answer.text();
  if (answer.ok) return answer.status === 204 ? null : answer.json();
  const told = await answer.json().catch(() => ({}));
  if (answer.status === 401) listeners.signIn();
  throw new Problem(answer.status, told);
}
