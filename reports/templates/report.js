// Filter, sort, theme, deep links, pointer read-out, download. The page is whole without it.
"use strict";
(() => {
  const root = document.documentElement;
  const byId = (id) => document.getElementById(id);
  const all = (selector, from = document) => Array.from(from.querySelectorAll(selector));
  root.classList.add("js");

  // The address: #place?key=value&… so that a link reproduces what is on the screen.
  const readAddress = () => {
    const [place, query = ""] = location.hash.slice(1).split("?");
    return { place: decodeURIComponent(place), state: new URLSearchParams(query) };
  };
  const writeAddress = (place, changes) => {
    const address = readAddress();
    const state = address.place === place ? address.state : new URLSearchParams();
    for (const [key, value] of Object.entries(changes)) value ? state.set(key, value) : state.delete(key);
    const query = state.toString();
    history.replaceState(null, "", "#" + place + (query ? "?" + query : ""));
  };

  // Theme: what the system says, unless chosen here.
  const themes = ["auto", "light", "dark"];
  const stored = (() => { try { return localStorage.getItem("headroom-theme"); } catch { return null; } })();
  const setTheme = (theme) => {
    if (theme === "auto") delete root.dataset.theme; else root.dataset.theme = theme;
    byId("theme").textContent = "Theme: " + theme;
    byId("theme").dataset.now = theme;
  };
  setTheme(themes.includes(stored) ? stored : "auto");
  byId("theme").addEventListener("click", () => {
    const next = themes[(themes.indexOf(byId("theme").dataset.now) + 1) % themes.length];
    setTheme(next);
    try { localStorage.setItem("headroom-theme", next); } catch { /* private window: this page only */ }
  });

  // Claims by verdict.
  const filterClaims = (verdict) => {
    const select = byId("claim-verdict");
    if (!select) return;
    select.value = Array.from(select.options).some((option) => option.value === verdict) ? verdict : "";
    const items = all("[data-verdict]", byId("claims"));
    for (const item of items) item.hidden = select.value !== "" && item.dataset.verdict !== select.value;
    const articles = items.filter((item) => item.matches("article"));
    byId("claim-shown").textContent =
      select.value ? articles.filter((item) => !item.hidden).length + " of " + articles.length + " claims" : "";
  };
  byId("claim-verdict")?.addEventListener("change", (event) => {
    filterClaims(event.target.value);
    writeAddress("claims", { verdict: event.target.value });
  });
  byId("claim-evidence")?.addEventListener("click", (event) => {
    const open = event.target.textContent.startsWith("Open");
    for (const part of all(".part", byId("claims"))) part.open = open;
    event.target.textContent = (open ? "Close" : "Open") + " all evidence";
  });

  // Matrix: one figure; one device and one value of every other axis, or all of them.
  const axisSelects = all(".matrix-axis");
  const offer = (select, value) => {
    if (Array.from(select.options).some((option) => option.value === value)) select.value = value;
  };
  const figures = byId("matrix-figures") ? JSON.parse(byId("matrix-figures").textContent) : null;
  const slots = all("#matrix .m");  // in the order of the figures
  const span = (name, text) => {
    const element = document.createElement("span");
    element.className = name;
    element.append(text);
    return element;
  };
  const showFigure = (slot, metric, packed) => {
    const [text, exact, heat, ratio, interval] = packed || ["–", "not known"];
    slot.dataset.m = metric;
    slot.className = "m heat-" + (heat ?? "x");
    slot.title = exact + ", " + slot.dataset.n + " samples";
    const value = document.createElement("b");
    value.textContent = text;
    const kept = all(".reason", slot);
    const parts = [value];
    if (ratio) parts.push(span("rel", ratio));
    if (interval) parts.push(span("ci", interval));
    slot.replaceChildren(...parts, ...kept);
  };
  const showMatrix = (state) => {
    const metrics = byId("matrix-metric");
    if (!metrics) return;
    offer(metrics, state.get("metric"));
    offer(byId("matrix-device"), state.get("device"));
    for (const select of axisSelects) offer(select, state.get("axis." + select.dataset.axis));
    if (slots.length && slots[0].dataset.m !== metrics.value)
      slots.forEach((slot, place) => showFigure(slot, metrics.value, figures.metrics[metrics.value][place]));
    let shown = 0;
    for (const table of all("#matrix .device-table")) {
      const elsewhere = byId("matrix-device").value !== "" && table.dataset.device !== byId("matrix-device").value;
      let rows = 0;
      for (const row of all("tbody tr", table)) {
        const axes = JSON.parse(row.dataset.axes ?? "{}");
        row.hidden = axisSelects.some((select) => select.value !== "" && axes[select.dataset.axis] !== select.value);
        if (!row.hidden) rows += 1;
      }
      table.hidden = elsewhere || rows === 0;
      if (!table.hidden) shown += 1;
    }
    byId("matrix-none").hidden = shown > 0;
  };
  for (const select of [byId("matrix-metric"), byId("matrix-device"), ...axisSelects])
    select?.addEventListener("change", () => {
      const state = { metric: byId("matrix-metric").value, device: byId("matrix-device").value };
      for (const other of axisSelects) state["axis." + other.dataset.axis] = other.value;
      showMatrix(new URLSearchParams(state));
      writeAddress("matrix", state);
    });

  // Cells: find, filter, order.
  const list = byId("cell-list");
  const cells = list ? all(":scope > details", list) : [];
  const names = new Map();  // the words that find a cell
  const plainWords = (text) => text.toLowerCase().split(/[\s(),;]+/).filter(Boolean);
  const nameOf = (cell) => {
    if (!names.has(cell)) {
      const text = Array.from(cell.querySelectorAll(".spec, .axes, .name"), (part) => part.textContent).join(" ");
      names.set(cell, plainWords(text).join(" "));
    }
    return names.get(cell);
  };
  let most = list ? Number(list.dataset.most) : 0;  // cells shown until the reader asks for all
  const arrangeCells = () => {
    const words = plainWords(byId("cell-find").value);
    const status = byId("cell-status").value;
    const found = (cell) => {
      const text = nameOf(cell);
      return (!status || cell.dataset.status === status) && words.every((word) => text.includes(word));
    };
    const key = byId("cell-order").value;
    const value = (cell) => (cell.dataset[key] === undefined ? Infinity : Number(cell.dataset[key]));
    const ordered = key ? cells.slice().sort((a, b) => value(a) - value(b)) : cells;
    list.append(...ordered);
    const matching = ordered.filter(found);
    const shown = new Set(matching.slice(0, most));
    for (const cell of cells) cell.hidden = !shown.has(cell);
    byId("cell-none").hidden = matching.length > 0;
    byId("cell-more").hidden = shown.size === matching.length;
    byId("cell-more").textContent = "Show all " + matching.length + " configurations";
    byId("cell-shown").textContent = shown.size < cells.length ? shown.size + " of " + cells.length + " configurations" : "";
  };
  const showAllCells = () => { most = Infinity; arrangeCells(); };
  if (list) {
    for (const [id, name] of [["cell-find", "input"], ["cell-status", "change"], ["cell-order", "change"]])
      byId(id).addEventListener(name, () => {
        arrangeCells();
        writeAddress("cells", {
          find: byId("cell-find").value, status: byId("cell-status").value, order: byId("cell-order").value,
        });
      });
    byId("cell-more").addEventListener("click", showAllCells);
  }

  // Going to an address: set its state, open what encloses it, scroll there.
  const follow = () => {
    const { place, state } = readAddress();
    if (place === "claims" || place === "") filterClaims(state.get("verdict") || "");
    if (place === "matrix") showMatrix(state);
    if (place === "cells" && list) {
      byId("cell-find").value = state.get("find") || "";
      byId("cell-status").value = state.get("status") || "";
      byId("cell-order").value = state.get("order") || "";
      arrangeCells();
    }
    const target = place && byId(place);
    if (!target) return;
    if (target.hidden || target.closest("[hidden]")) {  // a filter must not swallow a link
      filterClaims("");
      if (list) { byId("cell-find").value = ""; byId("cell-status").value = ""; showAllCells(); }
    }
    const fold = target.querySelector(":scope > .fold, :scope > .finding");
    if (fold) fold.open = true;
    for (let element = target; element; element = element.parentElement)
      if (element.matches("details")) element.open = true;
    target.scrollIntoView();
  };
  addEventListener("hashchange", follow);
  const clearOfBar = () => { root.style.scrollPaddingTop = document.querySelector(".bar").offsetHeight + 16 + "px"; };
  clearOfBar();
  addEventListener("resize", clearOfBar);
  document.addEventListener("click", (event) => {  // a link to the current address fires no hashchange
    const link = event.target.closest?.("a[href^='#']");
    if (link && link.hash === location.hash) follow();
  });
  addEventListener("beforeprint", () => all(".fold").forEach((fold) => { fold.open = true; }));

  // Marks the current section.
  const links = all(".nav a");
  const sections = links.map((link) => byId(link.hash.slice(1)));
  const mark = () => {
    const line = innerHeight / 3;
    let current = 0;
    sections.forEach((section, place) => { if (section.getBoundingClientRect().top <= line) current = place; });
    // Near the end of the page the address tells better than the scroll position.
    const named = sections.findIndex((section) => section.id === readAddress().place);
    if (innerHeight + scrollY >= document.body.scrollHeight - 4) current = named > 0 ? named : sections.length - 1;
    links.forEach((link, place) => {
      if (place === current) link.setAttribute("aria-current", "true"); else link.removeAttribute("aria-current");
    });
  };
  addEventListener("scroll", mark, { passive: true });

  // On a phone a table is read row by row, each figure behind its heading.
  const phone = matchMedia("(max-width: 40rem)");
  const stackTables = () => {
    if (!phone.matches) return;
    for (const table of all("table:not(.ladder, .stacked)")) {
      const names = all("thead th", table).map((header) => header.textContent);
      if (names.length < 3) continue;
      for (const cell of all("tbody tr > *", table)) {
        cell.dataset.label = names[cell.cellIndex] ?? "";
        if (cell.textContent === "–") cell.classList.add("none");
      }
      table.classList.add("stacked");
    }
  };
  stackTables();
  phone.addEventListener("change", stackTables);

  // Tables: sort by a column, take away as CSV.
  const worthOf = (cell) =>
    cell.dataset.sort ?? (cell.classList.contains("n") ? cell.title.split(" ")[0].replaceAll(",", "") : cell.textContent.trim());
  const sortTable = (table, column, header) => {
    const down = header.getAttribute("aria-sort") === "ascending";
    all("th", table.tHead).forEach((other) => other.removeAttribute("aria-sort"));
    header.setAttribute("aria-sort", down ? "descending" : "ascending");
    const key = (row) => {
      const text = worthOf(row.cells[column]);
      return text !== "" && !Number.isNaN(Number(text)) ? Number(text) : text;
    };
    const compare = (a, b) => {
      const numbers = (typeof a === "number") - (typeof b === "number");
      if (numbers) return -numbers;  // figures before words
      return typeof a === "number" ? a - b : a.localeCompare(b);
    };
    const body = table.tBodies[0];
    const rows = Array.from(body.rows).map((row) => [key(row), row]);
    rows.sort((a, b) => (down ? -1 : 1) * compare(a[0], b[0]));
    body.append(...rows.map(([, row]) => row));
  };
  const save = (name, type, text) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };
  const quote = (text) => (/[",\n]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text);
  const csv = (table) =>
    Array.from(table.rows)
      .map((row) => Array.from(row.cells).map((cell) => quote(worthOf(cell))).join(","))
      .join("\n") + "\n";
  for (const table of all("table.sortable")) {
    all("th", table.tHead).forEach((header, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...header.childNodes);
      button.addEventListener("click", () => sortTable(table, column, header));
      header.append(button);
    });
    if (table.tBodies[0].rows.length < 2) continue;
    const button = document.createElement("button");
    button.type = "button";
    button.className = "csv";
    button.textContent = "Download CSV";
    button.addEventListener("click", () => save(table.id + ".csv", "text/csv", csv(table)));
    table.closest(".scroll").after(button);
  }
  byId("download-json")?.addEventListener("click", (event) =>
    save(event.target.dataset.name + ".json", "application/json", byId("run-data").textContent));

  // Pointer read-out over charts.
  const scaled = (value, units) => {
    let [name, size] = units[0];
    for (const unit of units) if (Math.abs(value) >= unit[1]) [name, size] = unit;
    const number = value / size;
    return (Number.isInteger(number) || number >= 1000 ? number.toFixed() : number.toPrecision(3)) + "\u202f" + name;
  };
  const bytes = [["B", 1], ["KiB", 2 ** 10], ["MiB", 2 ** 20], ["GiB", 2 ** 30], ["TiB", 2 ** 40]];
  const words = (value, unit) => {
    if (value === null || value === undefined) return "–";
    if (unit === "MiB") return scaled(value * 2 ** 20, bytes);
    return String(value) + (unit ? "\u202f" + unit : "");
  };
  const tip = byId("tip");
  const line = (name, text) => {
    const row = document.createElement("span");
    const value = document.createElement("i");
    value.textContent = text;
    row.append(name, value);
    return row;
  };
  for (const plot of all(".plot")) {
    const source = plot.querySelector("script");
    if (!source) continue;
    const svg = plot.querySelector("svg");
    let data = null;
    let cursor = null;
    const leave = () => { tip.hidden = true; cursor?.remove(); };
    svg.addEventListener("pointermove", (event) => {
      data ??= JSON.parse(source.textContent);
      const box = svg.getBoundingClientRect();
      const x = ((event.clientX - box.left) / box.width) * svg.viewBox.baseVal.width;
      let low = 0;
      let high = data.x.length - 1;
      while (high - low > 1) { const middle = (low + high) >> 1; if (data.x[middle] <= x) low = middle; else high = middle; }
      const at = Math.abs(data.x[high] - x) < Math.abs(x - data.x[low]) ? high : low;
      cursor ??= document.createElementNS("http://www.w3.org/2000/svg", "line");
      for (const [key, value] of Object.entries({ x1: data.x[at], x2: data.x[at], y1: data.top, y2: data.bottom, class: "cursor" }))
        cursor.setAttribute(key, value);
      svg.append(cursor);
      const title = document.createElement("b");
      title.textContent = data.labels.findLast(([start]) => start <= at)[1];
      const rows = data.series
        .filter((series) => (series.text ?? series.values)[at] !== undefined && (series.values?.[at] ?? 1) !== 0)
        .map((series) => line(series.name, series.text ? series.text[at] : words(series.values[at], data.unit)));
      tip.replaceChildren(title, ...rows);
      tip.hidden = false;
      const width = tip.offsetWidth;
      tip.style.left = Math.max(8, Math.min(event.clientX + 16, innerWidth - width - 8)) + "px";
      tip.style.top = Math.max(8, event.clientY - tip.offsetHeight - 14) + "px";
    });
    svg.addEventListener("pointerleave", leave);
  }

  // On paper: the data lists of claims stay closed, their evidence and notes on reading are open.
  addEventListener("beforeprint", () => all(".how, .part").forEach((element) => { element.open = true; }));

  filterClaims("");
  if (list) arrangeCells();
  follow();
  mark();
})();
