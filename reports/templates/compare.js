// Two cells side by side: a forest of changes, pairs, distributions of step times. Draws what the
// run recorded; judges nothing.
"use strict";
(() => {
  const source = document.getElementById("compare-cells");
  if (!source) return;
  const data = JSON.parse(source.textContent);
  const out = document.getElementById("compare-out");
  const selects = { a: document.getElementById("compare-a"), b: document.getElementById("compare-b") };
  const NARROW = "\u202f", DASH = "–";

  // Words.
  const figures = (value) => {
    const text = Math.abs(value) >= 1000 ? Math.round(value).toLocaleString("en").replaceAll(",", NARROW)
      : Number.isInteger(value) ? String(value) : value.toPrecision(3);
    return text.replace("-", "−");
  };
  const scaled = (value, units) => {
    let chosen = units[0];
    for (const unit of units) if (Math.abs(value) >= unit[1] * 0.9995) chosen = unit;
    return figures(value / chosen[1]) + NARROW + chosen[0];
  };
  const inUnit = (value, unit) => {
    if (value === null) return DASH;
    if (unit === "bytes") return scaled(value, [["B", 1], ["KiB", 2 ** 10], ["MiB", 2 ** 20], ["GiB", 2 ** 30], ["TiB", 2 ** 40]]);
    if (unit === "ns") return scaled(value, [["ns", 1], ["µs", 1e3], ["ms", 1e6], ["s", 1e9]]);
    return figures(value) + (unit ? NARROW + unit : "");
  };
  const percent = (theta) => {
    const change = Math.expm1(theta) * 100;
    if (change >= 300) return figures(1 + change / 100) + "×";
    const text = Math.abs(change).toFixed(Math.abs(change) < 1 && change !== 0 ? 2 : 1).replace(/\.0$/, "");
    return (change > 0 ? "+" : change < 0 ? "−" : "") + text + NARROW + "%";
  };

  // Elements.
  const make = (tag, attributes = {}, ...children) => {
    const element = document.createElement(tag);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...children);
    return element;
  };
  const shape = (tag, attributes, text = "") => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.textContent = text;
    return element;
  };
  const line = (x1, y1, x2, y2, token, width = 1, more = {}) =>
    shape("path", { d: `M${x1.toFixed(1)} ${y1.toFixed(1)}L${x2.toFixed(1)} ${y2.toFixed(1)}`, stroke: `var(--${token})`, "stroke-width": width, fill: "none", ...more });
  const words = (x, y, text, more = {}) => shape("text", { x, y, fill: "var(--muted)", ...more }, text);
  let charts = 0;
  const canvas = (width, height, title, description) => {
    const id = "compare-chart-" + ++charts;
    const svg = shape("svg", { viewBox: `0 0 ${width} ${height}`, class: "chart", role: "img", "aria-labelledby": `${id}-t ${id}-d` });
    svg.append(shape("title", { id: id + "-t" }, title), shape("desc", { id: id + "-d" }, description));
    return svg;
  };
  const figure = (title, svg, note, ...more) =>
    make("figure", { class: "figure" }, make("figcaption", {}, title), ...more, make("div", { class: "plot" }, svg), make("p", { class: "note" }, note), make("button", { type: "button", class: "csv svg" }, "SVG"));
  const badge = (word) => {
    const [tone, icon] = data.words[word] ?? ["none", "question"];
    const use = shape("use", { href: "#i-" + icon });
    const svg = shape("svg", { class: "icon", "aria-hidden": "true" });
    svg.append(use);
    return make("span", { class: "badge tone-" + tone }, svg, word);
  };

  // B against A: as the run compared them, seen from A. Null where it did not.
  const turned = { WORSE: "BETTER", BETTER: "WORSE" };
  const comparison = (a, b, metric) => {
    if (a.experiment !== b.experiment || a === b) return null;
    if (b.base === a.arm && b.compared[metric]) {
      const [theta, low90, high90, low95, high95, delta, exact, verdict] = b.compared[metric];
      return { theta, ci90: [low90, high90], ci95: [low95, high95], delta, exact, verdict };
    }
    if (a.base === b.arm && a.compared[metric]) {
      const [theta, low90, high90, low95, high95, delta, exact, verdict] = a.compared[metric];
      const minus = (value) => (value === null ? null : -value);
      return { theta: -theta, ci90: [minus(high90), minus(low90)], ci95: [minus(high95), minus(low95)], delta, exact, verdict: turned[verdict] ?? verdict };
    }
    return null;
  };

  const FOREST = 240;
  const forestMark = (found, reach) => {
    const svg = shape("svg", { viewBox: `0 0 ${FOREST} 24`, class: "forest", "aria-hidden": "true" });
    const at = (theta) => FOREST / 2 + Math.max(-1, Math.min(1, theta / reach)) * (FOREST / 2 - 8);
    const band = [at(-found.delta), at(found.delta)];
    svg.append(shape("rect", { x: band[0], y: 0, width: Math.max(1, band[1] - band[0]), height: 24, fill: "var(--accepted)" }));
    svg.append(line(FOREST / 2, 0, FOREST / 2, 24, "faint"));
    for (const [bounds, width, opacity] of [[found.ci95, 1.6, 1], [found.ci90, 5, 0.45]])
      if (bounds[0] !== null && bounds[1] !== null) svg.append(line(at(bounds[0]), 12, at(bounds[1]), 12, "ink", width, { opacity }));
    const x = at(found.theta);
    if (Math.abs(found.theta) > reach) {
      const side = Math.sign(found.theta);
      svg.append(shape("path", { d: `M${x - side * 6} 6L${x + side * 4} 12L${x - side * 6} 18`, stroke: "var(--ink)", "stroke-width": 2, fill: "none" }));
    } else svg.append(shape("circle", { cx: x, cy: 12, r: 4.5, fill: "var(--ink)" }));
    return svg;
  };

  const forest = (a, b) => {
    const rows = data.metrics.map((metric, place) => [metric, place, comparison(a, b, place)]);
    const known = rows.map(([, , found]) => found).filter(Boolean);
    // Exact values need no scale and must not flatten the intervals.
    const noisy = known.filter((found) => !found.exact);
    const bounds = (noisy.length ? noisy : known).flatMap((found) => [found.theta, ...found.ci95, 3 * found.delta]).filter((value) => value !== null).map(Math.abs);
    const reach = Math.min(Math.max(0.02, ...bounds) * 1.05, Math.log(1.5));
    const body = make("tbody");
    for (const [metric, place, found] of rows) {
      const [before, after] = [a.values[place] ?? null, b.values[place] ?? null];
      if (before === null && after === null) continue;
      const row = make("tr", {}, make("th", { scope: "row" }, metric.name));
      row.append(make("td", {}, inUnit(before, metric.unit)), make("td", {}, inUnit(after, metric.unit)));
      if (found) {
        const interval = found.exact ? "exact" : found.ci95[0] === null ? DASH : percent(found.ci95[0]) + " … " + percent(found.ci95[1]);
        row.append(make("td", {}, percent(found.theta)), make("td", { class: "drawn" }, forestMark(found, reach)), make("td", {}, interval), make("td", {}, badge(found.verdict)));
      } else row.append(make("td", { colspan: 4, class: "muted" }, before === after ? "the same" : "no comparison"));
      body.append(row);
    }
    const head = make("tr");
    for (const text of ["figure", "A", "B", "B against A", "within ±" + percent(Math.log1p(Math.expm1(reach))).slice(1), "95 % interval", "verdict"])
      head.append(make("th", { scope: "col" }, text));
    const table = make("table", { class: "forest-table" }, make("caption", { class: "unseen" }, "B against A"), make("thead", {}, head), body);
    const scroll = make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "B against A" }, table);
    const note = known.length
      ? "The band marks changes that count as none (±δ). Thick bars are 90 % intervals and thin bars are 95 % intervals. An arrow points beyond the scale."
      : "This run did not pair these two. Run them as variants of one experiment to get intervals and verdicts.";
    return [scroll, make("p", { class: "note" }, note)];
  };

  const ticks = (low, high, count = 4) => {
    const raw = (high - low) / count, power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((size) => size >= raw * 0.999);
    const found = [];
    for (let tick = Math.ceil(low / step) * step; tick <= high + step * 1e-6; tick += step) found.push(Math.abs(tick) < step * 1e-6 ? 0 : tick);
    return found;
  };

  // One dot per pair: how much more time B took than A, which ran just before or after it.
  const pairs = (a, b) => {
    if (a.experiment !== b.experiment || a === b) return null;
    const first = new Map(a.blocks.map((block) => [block[0], block]));
    const taken = b.blocks.filter(([block]) => first.has(block));
    // A pair that something disturbed is no data: it is counted, and not drawn.
    const found = taken.filter(([, , out]) => !out).map(([block, time]) => ({ block, theta: Math.log(time / first.get(block)[1]) }));
    if (!found.length) return null;
    const judged = comparison(a, b, data.time);
    const delta = judged?.delta ?? 0.03;
    const reach = Math.max(delta * 1.5, ...found.map((pair) => Math.abs(pair.theta))) * 1.15;
    const [width, height, left, top, bottom] = [520, 260, 70, 14, 40];
    const y = (theta) => top + (1 - (theta + reach) / (2 * reach)) * (height - top - bottom);
    const x = (place) => left + ((place + 0.5) / found.length) * (width - left - 10);
    const svg = canvas(width, height, "Step time, pair by pair", `B against A in ${found.length} pairs, from ${percent(Math.min(...found.map((p) => p.theta)))} to ${percent(Math.max(...found.map((p) => p.theta)))}.`);
    svg.append(shape("rect", { x: left, y: y(delta), width: width - left - 10, height: y(-delta) - y(delta), fill: "var(--accepted)" }));
    const doublings = Math.ceil(reach / Math.LN2 / 3);
    const marks = reach > 0.8 ? [-2, -1, 0, 1, 2].map((power) => power * doublings * Math.LN2).filter((tick) => Math.abs(tick) < reach)
      : ticks(Math.expm1(-reach), Math.expm1(reach)).map(Math.log1p);
    for (const tick of marks) {
      svg.append(line(left, y(tick), width - 10, y(tick), tick === 0 ? "faint" : "line"));
      svg.append(words(left - 8, y(tick) + 4, reach > 0.8 ? figures(Number(Math.exp(tick).toPrecision(3))) + "×" : percent(tick), { "text-anchor": "end" }));
    }
    if (judged) svg.append(line(left, y(judged.theta), width - 10, y(judged.theta), "ink", 1.6, { "stroke-dasharray": "5 4" }));
    const every = Math.ceil(found.length / 12);
    found.forEach((pair, place) => {
      svg.append(shape("circle", { cx: x(place), cy: y(pair.theta), r: 4.5, fill: `var(--${b.colour})` }));
      if (place % every === 0) svg.append(words(x(place), height - 22, String(pair.block), { "text-anchor": "middle" }));
    });
    svg.append(words((left + width - 10) / 2, height - 4, "block", { "text-anchor": "middle" }));
    const disturbed = taken.length - found.length;
    const rest = disturbed ? ` ${disturbed} more ${disturbed > 1 ? "were disturbed and are" : "was disturbed and is"} not drawn.` : "";
    return figure("Step time of B against A, pair by pair", svg, `${found.length} pairs; ${reach > 0.8 ? "above 1×" : "above zero"} B is slower. Band: ±δ.${judged ? " Dashed: the run's estimate." : ""}${rest}`);
  };

  const distributions = (a, b) => {
    const both = [["A", a, ""], ["B", b, "6 4"]].filter(([, cell]) => cell.times.length);
    if (!both.length) return null;
    const low = Math.min(...both.map(([, cell]) => cell.times[0]));
    const high = Math.max(...both.map(([, cell]) => cell.times.at(-1)));
    const [width, height, left, top, bottom] = [520, 260, 50, 14, 40];
    const room = (high - low || low) * 0.04;
    const x = (time) => left + ((time - low + room) / (high - low + 2 * room)) * (width - left - 16);
    const y = (share) => top + (1 - share) * (height - top - bottom);
    const svg = canvas(width, height, "Distribution of step times", both.map(([name, cell]) => `${name}: half of the steps take at most ${inUnit(cell.times[cell.times.length >> 1], "ns")}.`).join(" "));
    for (const share of [0, 0.25, 0.5, 0.75, 1]) {
      svg.append(line(left, y(share), width - 16, y(share), share ? "line" : "faint"));
      svg.append(words(left - 8, y(share) + 4, share * 100 + NARROW + "%", { "text-anchor": "end" }));
    }
    for (const tick of ticks(low - room / 2, high + room / 2, 5)) svg.append(words(x(tick), height - 22, inUnit(tick, "ns"), { "text-anchor": "middle" }));
    for (const [, cell, dash] of both) {
      const steps = cell.times.map((time, place) => `H${x(time).toFixed(1)}V${y((place + 1) / cell.times.length).toFixed(1)}`).join("");
      svg.append(shape("path", { d: `M${x(cell.times[0]).toFixed(1)} ${y(0)}${steps}`, fill: "none", stroke: `var(--${cell.colour})`, "stroke-width": 2, "stroke-dasharray": dash }));
    }
    svg.append(words((left + width) / 2, height - 4, "time of a step after warm-up", { "text-anchor": "middle" }));
    const legend = make("ul", { class: "legend" });
    for (const [name, cell, dash] of both) {
      const swatch = shape("svg", { class: "swatch", viewBox: "0 0 22 12", "aria-hidden": "true" });
      swatch.append(line(0, 6, 22, 6, cell.colour, 2.4, { "stroke-dasharray": dash }));
      legend.append(make("li", {}, swatch, `${name}, ${cell.steps} steps` + (cell.times.length < cell.steps ? `, ${cell.times.length} drawn` : "")));
    }
    return figure("Share of steps that took at most so long", svg, "Every step after warm-up of every sample; smallest and largest kept. The axis does not begin at zero.", legend);
  };

  const show = () => {
    const [a, b] = ["a", "b"].map((side) => data.cells.find((cell) => cell.key === selects[side].value));
    charts = 0;
    const names = make("dl", { class: "facts" });
    for (const [name, cell] of [["A", a], ["B", b]])
      names.append(make("div", {}, make("dt", {}, name + (cell.simulated ? ", simulated" : ", measured")), make("dd", {}, make("a", { href: "#" + cell.link }, cell.name), " on " + cell.device)));
    const drawn = [pairs(a, b), distributions(a, b)].filter(Boolean);
    if (!drawn.length) drawn.push(make("p", { class: "note" }, "Neither was timed: nothing is computed on meta."));
    out.replaceChildren(names, ...forest(a, b), make("div", { class: "figures" }, ...drawn));
  };

  const groups = new Map();
  for (const cell of data.cells) groups.set(cell.experiment, [...(groups.get(cell.experiment) ?? []), cell]);
  for (const select of Object.values(selects))
    for (const [experiment, cells] of groups)
      select.append(make("optgroup", { label: experiment }, ...cells.map((cell) => make("option", { value: cell.key, title: cell.name }, cell.arm + " · " + experiment))));
  const has = (key) => data.cells.some((cell) => cell.key === key);
  const start = data.cells.find((cell) => data.cells.some((other) => other !== cell && other.experiment === cell.experiment && other.arm === cell.base)) ?? data.cells[1];
  const partner = data.cells.find((cell) => cell.experiment === start.experiment && cell.arm === start.base) ?? data.cells[0];
  const choose = (a, b) => {
    selects.a.value = has(a) ? a : partner.key;
    selects.b.value = has(b) ? b : start.key;
    show();
  };
  const address = () => {
    const state = new URLSearchParams({ a: selects.a.value, b: selects.b.value });
    history.replaceState(null, "", "#compare?" + state);
  };
  const followAddress = () => {
    const [place, query = ""] = location.hash.slice(1).split("?");
    if (place !== "compare") return;
    const state = new URLSearchParams(query);
    choose(state.get("a") ?? selects.a.value, state.get("b") ?? selects.b.value);
  };
  for (const select of Object.values(selects)) select.addEventListener("change", () => { show(); address(); });
  document.getElementById("compare-swap").addEventListener("click", () => { choose(selects.b.value, selects.a.value); address(); });
  addEventListener("hashchange", followAddress);
  choose();
  followAddress();
})();
