// Before anything is drawn: the theme that was chosen here, if one was.
(() => {
  let chosen = null;
  try {
    chosen = localStorage.getItem("headway-theme");
  } catch {
    // Storage may be switched off; then the system's own theme holds.
  }
  if (chosen === "light" || chosen === "dark") {
    document.documentElement.dataset.theme = chosen;
  }
})();
