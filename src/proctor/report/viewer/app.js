// Starting up, the theme, printing, keys.

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  try {
    localStorage.setItem("proctor-theme", theme);
  } catch {
    // a page opened from a file may have no storage
  }
}

function setUpTheme() {
  let stored = null;
  try {
    stored = localStorage.getItem("proctor-theme");
  } catch {
    // as above
  }
  if (stored === "light" || stored === "dark") document.documentElement.dataset.theme = stored;
  $("theme").addEventListener("click", () => {
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    const now = document.documentElement.dataset.theme || (dark ? "dark" : "light");
    setTheme(now === "dark" ? "light" : "dark");
  });
}

function setUpKeys() {
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest("input, select, textarea");
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (current && !typing && event.key === "ArrowLeft") neighbour(-1);
    else if (current && !typing && event.key === "ArrowRight") neighbour(1);
    else if (!current && !typing && event.key === "/") {
      event.preventDefault();
      $("search").focus();
    }
  });
}

drawOverview();
setUpTable();
setUpTheme();
setUpKeys();
setUpEpisode();
$("print").addEventListener("click", () => print());
window.addEventListener("beforeprint", () => renderMore(shown.length));
document.documentElement.dataset.ready = "yes";
