// Where tokens are asked for: one field, kept in this tab and nowhere else.

import { h } from "./dom.js";

export function signIn(wrong, enter) {
  const told = h("p", { class: "bad", role: "alert" }, wrong);
  const secret = h("input", { type: "password", name: "token", autocomplete: "current-password", required: true, "aria-describedby": "kept" });
  const go = h("button", { class: "main", type: "submit" }, "Sign in");
  async function submitted(event) {
    event.preventDefault();
    go.disabled = true;
    told.textContent = "";
    try {
      await enter(secret.value.trim());
    } catch (error) {
      told.textContent = error.message;
      go.disabled = false;
      secret.select();
    }
  }
  document.title = "Sign in · Headway";
  return h("div", { class: "card" },
    h("h1", {}, "Headway"),
    h("p", { class: "soft" }, "This server asks for a token. Make one with ", h("span", { class: "mono" }, "headway token create"), "; to look around it needs ", h("span", { class: "mono" }, "read"), "."),
    h("form", { onsubmit: submitted, class: "filters" },
      h("label", { class: "field" }, h("span", {}, "Token"), secret), go),
    told,
    h("p", { class: "soft small", id: "kept" }, "It stays in this tab and is forgotten when the tab is closed."));
}
