(() => {
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const button = document.createElement("button");
  button.type = "button";
  button.className = "theme";
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : dark.matches);
  const name = () => { button.textContent = isDark() ? "Light theme" : "Dark theme"; };
  button.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    name();
  });
  dark.addEventListener("change", name);
  name();
  document.querySelector("header").append(button);

  const open = () => {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target instanceof HTMLDetailsElement) { target.open = true; target.scrollIntoView(); }
  };
  addEventListener("hashchange", open);
  open();
  addEventListener("beforeprint", () => {
    for (const folded of document.querySelectorAll("details[id]")) folded.open = true;
  });

  for (const chart of document.querySelectorAll(".ph-chart")) {
    const keys = chart.querySelectorAll(".ph-key");
    if (keys.length < 2 || !chart.querySelector(".ph-series")) continue;
    chart.setAttribute("role", "group");
    for (const key of keys) {
      const series = chart.querySelectorAll(`.ph-series[data-series="${key.dataset.series}"]`);
      key.setAttribute("tabindex", "0");
      key.setAttribute("role", "button");
      key.setAttribute("aria-pressed", "true");
      const toggle = () => {
        const off = key.classList.toggle("ph-muted");
        key.setAttribute("aria-pressed", String(!off));
        for (const group of series) group.classList.toggle("ph-off", off);
      };
      key.addEventListener("click", toggle);
      key.addEventListener("keydown", (event) => {
        if (event.key === "Enter" || event.key === " ") { event.preventDefault(); toggle(); }
      });
    }
  }
})();
