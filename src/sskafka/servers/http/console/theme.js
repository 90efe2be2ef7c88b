// Applies the chosen colours before the first paint. A classic script, because modules run after the page is drawn.
(() => {
  const chosen = localStorage.getItem("sskafka.theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();
