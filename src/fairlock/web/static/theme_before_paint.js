// The theme is set before the first paint, so that a dark page never flashes white. Not a module: those run later.
(function () {
  try {
    var chosen = localStorage.getItem("fairlock-theme");
    if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
  } catch (error) {
    // A browser that keeps nothing shows the theme of the system.
  }
})();
