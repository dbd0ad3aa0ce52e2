// Questions before anything is done that can't be undone.

import { h, say } from "./dom.js";

let left = 0;
let leaveIt = () => {};

// The page is left: its question goes with it, and what it still wanted to ask is not asked.
export function dismiss() {
  left++;
  leaveIt();
}

// For questions that need an answer of the server first: asked only if the page is still there.
export function later() {
  const now = left;
  return (asked) => (now === left ? question(asked) : Promise.resolve(false));
}

// Asks, and does it: `act` gets the form's values; its refusal is shown in the dialog.
export function question({ title, text, fields = [], verb, isDanger = true, act }) {
  return new Promise((answered) => {
    const wrong = h("p", { class: "bad small", role: "alert" });
    const go = h("button", { class: `main ${isDanger ? "danger" : ""}`, type: "submit" }, verb);
    const reason = h("input", { name: "reason", maxlength: 500, autocomplete: "off" });
    const form = h("form", { onsubmit: submitted },
      h("h2", { id: "asked" }, title),
      typeof text === "string" ? h("p", { class: "soft" }, text) : text,
      fields,
      h("label", { class: "field" }, h("span", {}, "Why? It is kept beside your name."), reason),
      wrong,
      h("div", { class: "actions" },
        h("button", { type: "button", onclick: () => over(false) }, "Leave it"),
        go));
    const dialog = h("dialog", { "aria-labelledby": "asked" }, form);

    function over(result) {
      if (!dialog.isConnected) return;
      leaveIt = () => {};
      dialog.close();
      dialog.remove();
      answered(result);
    }

    async function submitted(event) {
      event.preventDefault();
      go.disabled = true;
      wrong.textContent = "";
      try {
        const said = await act(new FormData(form), reason.value.trim());
        over(true);
        if (said) say(said);
      } catch (error) {
        if (!dialog.isConnected) say(error.message);
        wrong.textContent = error.message;
        go.disabled = false;
      }
    }

    dialog.addEventListener("cancel", (event) => {
      event.preventDefault();
      over(false);
    });
    leaveIt = () => over(false);
    document.body.append(dialog);
    dialog.showModal();
  });
}

// Something that can be undone is done at once; a refusal is told.
export async function act(work) {
  try {
    const said = await work();
    if (said) say(said);
    return true;
  } catch (error) {
    say(error.message);
    return false;
  }
}
