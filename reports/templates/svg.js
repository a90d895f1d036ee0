// A chart to take away: the SVG as a file of its own, with the colours and the font of the page.
"use strict";
(() => {
  const painted = ["fill", "stroke", "font-family", "font-size", "paint-order", "stroke-width"];

  // Styles become attributes, because the saved file has no style sheet.
  const standalone = (svg) => {
    const copy = svg.cloneNode(true);
    const originals = [svg, ...svg.querySelectorAll("*")];
    [copy, ...copy.querySelectorAll("*")].forEach((element, place) => {
      const style = getComputedStyle(originals[place]);
      for (const name of painted) {
        const styled = element.tagName === "text" || element.closest(".halo") || name === "fill" || name === "stroke";
        if (!styled || (!element.hasAttribute(name) && element.tagName !== "text")) continue;
        element.setAttribute(name, style.getPropertyValue(name));
      }
    });
    copy.querySelectorAll(".cursor").forEach((element) => element.remove());
    const [left, top, width, height] = svg.getAttribute("viewBox").split(" ").map(Number);
    const ground = document.createElementNS(svg.namespaceURI, "rect");
    const surface = getComputedStyle(document.documentElement).getPropertyValue("--surface").trim();
    for (const [name, value] of Object.entries({ x: left, y: top, width, height, fill: surface }))
      ground.setAttribute(name, value);
    copy.insertBefore(ground, copy.querySelector(":scope > :not(title):not(desc)"));
    copy.setAttribute("width", width);
    copy.setAttribute("height", height);
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + new XMLSerializer().serializeToString(copy) + "\n";
  };

  // One listener for all, also for charts that are drawn later.
  addEventListener("click", (event) => {
    const button = event.target.closest?.("button.svg");
    if (!button) return;
    const svg = button.closest("figure").querySelector("svg.chart");
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([standalone(svg)], { type: "image/svg+xml" }));
    link.download = (svg.getAttribute("aria-labelledby") ?? "chart").split(" ")[0].replace(/-t$/, "") + ".svg";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  });
})();
