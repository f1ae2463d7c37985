// Inside Airflow the page stands in a frame that may neither open windows nor leave itself. Both are of one origin, so a link
// is followed by the page around it, and its colours are Airflow's. Alone, the page does nothing of this.

/** Returns the document around this one; null when there is none, or when it is somebody else's. */
function around() {
  try {
    return window.parent === window ? null : window.parent.document;
  } catch {
    return null;
  }
}

export function followLinksOutside() {
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[data-out]");
    const outer = around();
    if (!link || !outer || event.defaultPrevented) return;
    event.preventDefault();
    const twin = outer.createElement("a");
    twin.href = link.href;
    twin.target = event.ctrlKey || event.metaKey || event.shiftKey ? "_blank" : "_self";
    twin.rel = "noopener";
    outer.body.append(twin);
    twin.click();
    twin.remove();
  });
}

export function takeColours() {
  const root = around()?.documentElement;
  if (!root) return;
  const take = () => {
    const isDark = root.classList.contains("dark") || root.dataset.theme === "dark";
    const isLight = root.classList.contains("light") || root.dataset.theme === "light";
    if (isDark || isLight) document.documentElement.dataset.theme = isDark ? "dark" : "light";
  };
  take();
  new MutationObserver(take).observe(root, { attributes: true, attributeFilter: ["class", "data-theme"] });
}
