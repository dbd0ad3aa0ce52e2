// Elements from data: every text becomes a text node, nothing ever becomes markup.

const SVG = "http://www.w3.org/2000/svg";
const HANDLERS = ["onclick", "onsubmit", "onchange", "oninput", "ontoggle"];

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (HANDLERS.includes(name)) node[name] = value;
    else if (name === "value") node.value = value;
    else if (name === "width%") node.style.width = `${value}%`;
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  append(node, children);
  return node;
}

function append(node, children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (Array.isArray(child)) append(node, child);
    else node.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

export function h(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function s(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

// Makes `old` look like `made` and keeps what is the same: focus, scrolling and the
// place of a reader survive a refresh.
export function morph(old, made) {
  for (const { name } of [...old.attributes]) {
    if (!made.hasAttribute(name) && !(name === "open" && old.tagName === "DETAILS")) {
      old.removeAttribute(name);
    }
  }
  for (const { name, value } of [...made.attributes]) {
    if (name === "style") old.style.width = made.style.width;
    else if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  for (const name of HANDLERS) old[name] = made[name];
  const before = [...old.childNodes];
  const after = [...made.childNodes];
  after.forEach((child, place) => {
    const known = before[place];
    if (known === undefined) old.append(child);
    else if (known.nodeName !== child.nodeName) known.replaceWith(child);
    else if (child.nodeType === Node.TEXT_NODE) {
      if (known.data !== child.data) known.data = child.data;
    } else if (!["INPUT", "SELECT", "TEXTAREA"].includes(child.nodeName)) morph(known, child);
  });
  for (const child of before.slice(after.length)) child.remove();
}

export function link(...parts) {
  return `#/${parts.map(encodeURIComponent).join("/")}`;
}

// A part of a page that is drawn again and again.
export function part(tag = "div", attributes = {}) {
  const node = h(tag, attributes);
  return {
    node,
    show(...children) {
      morph(node, h(tag, attributes, ...children));
    },
  };
}

export function card(title, note, ...children) {
  return h("section", { class: "card" },
    h("header", {}, h("h2", {}, title), note ? h("span", { class: "soft" }, note) : null),
    ...children);
}

export function tile(label, figure, note, href, tone) {
  return h(href ? "a" : "div", { class: "tile", href },
    h("div", { class: "label" }, label),
    h("div", { class: `figure ${tone ?? ""}` }, figure),
    note ? h("div", { class: "note" }, note) : null);
}

// Columns are [heading, cell, class]; a cell is made of a row.
export function table(caption, columns, rows, empty) {
  if (!rows.length) return h("p", { class: "empty" }, empty ?? "There is nothing here.");
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
    h("table", {},
      h("caption", { class: "hidden" }, caption),
      h("thead", {}, h("tr", {}, columns.map(([heading, , style, sort]) =>
        h("th", { class: style, scope: "col", "aria-sort": sort?.is },
          sort ? h("button", { onclick: sort.go }, heading, sort.is ? (sort.is === "ascending" ? " ↑" : " ↓") : "")
            : heading || h("span", { class: "hidden" }, "More"))))),
      h("tbody", {}, rows.map((row) =>
        h("tr", {}, columns.map(([, cell, style]) => h("td", { class: style }, cell(row))))))));
}

export function facts(rows) {
  return h("dl", { class: "facts" }, rows
    .filter(([, value]) => value !== null && value !== undefined && value !== "")
    .map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
}

export function bar(share, tone) {
  const width = Math.max(0, Math.min(100, 100 * share));
  return h("span", { class: `bar ${tone ?? ""}` }, h("i", { "width%": width.toFixed(1) }));
}

export function badge(text, tone) {
  return h("span", { class: `badge ${tone ?? ""}` }, text);
}

export function field(label, input) {
  return h("label", { class: "field" }, h("span", {}, label), input);
}

export function options(chosen, values) {
  return values.map(([value, text]) =>
    h("option", { value, selected: value === chosen }, text));
}

// Says something to eyes and ears, for a while.
export function say(text) {
  const line = h("p", {}, text);
  document.getElementById("said").append(line);
  setTimeout(() => line.remove(), 6000);
}
