"use strict";

// The graph: zoom, pan, search, groups that open, and a panel with all that is known about a layer. Without this script
// the picture scrolls, and each node leads to its row in the table of layers.

const PADDING = 8, HEADER = 22, NAMESPACE = "http://www.w3.org/2000/svg";
const TYPES = { FLOAT: "FP32", HALF: "FP16", BF16: "BF16" };
const LAYERS = JSON.parse(document.getElementById("data").textContent).layers || [];

function element(name, attributes, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

function drawn(name, attributes, parent, text = "") {
  const made = document.createElementNS(NAMESPACE, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.textContent = text;
  parent.append(made);
  return made;
}

// Positions: an open group stretches the part of its level that it spans, so that nothing changes its order. ----------

function stretched(spans) {
  const ends = [...new Set(spans.flatMap(([start, stop]) => [start, stop]))].sort((a, b) => a - b);
  const pieces = ends.slice(1).map((stop, index) => {
    const start = ends[index];
    const over = spans.filter((span) => span[0] < stop && span[1] > start);
    return [start, stop, Math.max(1, ...over.map((span) => span[2] / (span[1] - span[0])))];
  });
  return (at) => pieces.reduce((sum, [start, stop, by]) => sum + (by - 1) * Math.max(0, Math.min(at, stop) - start), at);
}

const numbers = (text) => text.split(/[ ,]+/).map(Number);

// The place of a label by the piece of its line that is nearest.
function anchored([x, y], points) {
  const found = points.slice(1).map(([right, bottom], index) => {
    const [left, top] = points[index];
    const [width, height] = [right - left, bottom - top];
    const share = Math.min(1, Math.max(0, ((x - left) * width + (y - top) * height) / (width ** 2 + height ** 2 || 1)));
    const [dx, dy] = [x - left - share * width, y - top - share * height];
    return { index, share, dx, dy, distance: Math.hypot(dx, dy) };
  });
  return found.reduce((best, one) => (one.distance < best.distance ? one : best));
}

function readLevel(g) {
  const [width, height] = numbers(g.dataset.size);
  const [frames, lines, nodes] = ["frames", "lines", "nodes"].map((name) => [...g.querySelector(`:scope > .${name}`).children]);
  const level = { g, width, height };
  level.frames = frames.map((one) => ({ g: one, box: numbers(one.dataset.box) }));
  level.nodes = nodes.map((one) => {
    const inside = one.querySelector(":scope > .level");
    return { g: one, box: numbers(one.dataset.box), inside: inside && readLevel(inside), isOpen: false };
  });
  level.lines = lines.map((one) => {
    const way = one.querySelector(".way");
    const points = way.getAttribute("d").slice(1).split("L").map(numbers);
    const [source, destination] = numbers(one.dataset.ends);
    const label = one.querySelector(".copies");
    const at = label && anchored([Number(label.getAttribute("x")), Number(label.getAttribute("y"))], points);
    return {
      way, points, source: level.nodes[source], destination: level.nodes[destination],
      arrow: one.querySelector(".arrow"), label, at,
    };
  });
  return level;
}

function place(level) {
  const open = level.nodes.filter((node) => node.isOpen);
  for (const node of open) {
    const [width, height] = place(node.inside);
    node.needs = [Math.max(width + 2 * PADDING, node.box[2]), height + HEADER + PADDING];
    node.content = width;
  }
  const across = stretched(open.map(({ box, needs }) => [box[0], box[0] + box[2], needs[0]]));
  const down = stretched(open.map(({ box, needs }) => [box[1], box[1] + box[3], needs[1]]));
  const corners = ([x, y, width, height]) => [across(x), down(y), across(x + width) - across(x), down(y + height) - down(y)];
  for (const node of level.nodes) {
    const [x, y, width, height] = node.box;
    node.now = node.isOpen ? corners(node.box)
      : [across(x + width / 2) - width / 2, down(y + height / 2) - height / 2, width, height];
    node.g.setAttribute("transform", `translate(${node.now[0]},${node.now[1]})`);
    if (!node.isOpen) continue;
    const card = node.g.querySelector(":scope > .unfold > rect");
    card.setAttribute("width", node.now[2]);
    card.setAttribute("height", node.now[3]);
    node.inside.g.setAttribute("transform", `translate(${(node.now[2] - node.content) / 2},${HEADER})`);
  }
  for (const frame of level.frames) {
    const [x, y, width, height] = corners(frame.box);
    frame.g.setAttribute("transform", `translate(${x},${y})`);
    frame.g.firstElementChild.setAttribute("width", width);
    frame.g.firstElementChild.setAttribute("height", height);
  }
  for (const line of level.lines) placeLine(line, across, down);
  return [across(level.width), down(level.height)];
}

function port([x, y], { box, now }) {
  const [dx, dy] = [x - box[0] - box[2] / 2, y - box[1] - box[3] / 2];
  const beside = Math.abs(dx) > box[2] / 2 - 0.5 && Math.abs(dy) < box[3] / 2 - 0.5;
  const side = (offset, size) => Math.sign(offset) * size / 2;
  return [now[0] + now[2] / 2 + (beside ? side(dx, now[2]) : dx), now[1] + now[3] / 2 + (beside ? dy : side(dy, now[3]))];
}

function placeLine(line, across, down) {
  const old = line.points, last = old.length - 1;
  const points = old.map(([x, y]) => [across(x), down(y)]);
  points[0] = port(old[0], line.source);
  points[last] = port(old[last], line.destination);
  if (last === 1) {
    const [start, stop] = [points[0], points[1]];
    const middle = (start[1] + stop[1]) / 2;
    if (Math.abs(start[0] - stop[0]) > 0.5) points.splice(1, 0, [start[0], middle], [stop[0], middle]);
  } else {
    for (const [end, next] of [[0, 1], [last, last - 1]]) {
      const axis = Math.abs(old[end][0] - old[next][0]) < 0.5 ? 0 : 1;
      points[next][axis] = points[end][axis];
    }
  }
  line.way.setAttribute("d", "M" + points.map((point) => point.join(" ")).join("L"));
  const end = points[points.length - 1];
  if (line.arrow) line.arrow.setAttribute("d", `M${end[0]} ${end[1]}l-3.5 -6h7z`);
  if (line.label) {
    const { index, share, dx, dy } = line.at;
    const [from, to] = [points[index], points[index + 1]];
    line.label.setAttribute("x", from[0] + share * (to[0] - from[0]) + dx);
    line.label.setAttribute("y", from[1] + share * (to[1] - from[1]) + dy);
  }
}

// The panel -----------------------------------------------------------------------------------------------------------

function facts(rows) {
  return element("dl", {}, ...rows.filter((row) => row[1] !== "" && row[1] != null)
    .flatMap(([name, value]) => [element("dt", {}, name), element("dd", {}, String(value))]));
}

function ruleItem(kind, one) {
  const known = { rule: one.rule, parameter: one.parameter, actual: one.actual, allowed: one.allowed, unit: one.unit,
    remedy: one.remedy, source: one.source, fidelity: one.fidelity };
  const plain = (value) => (value !== null && typeof value === "object" ? JSON.stringify(value) : value);
  return element("li", {}, element("p", {}, `${kind}: ${one.message || one.text || one.rule}`),
    facts(Object.entries(known).map(([name, value]) => [name, plain(value)])));
}

function verdictBlock(device, verdict) {
  const found = [["violations", "Violated"], ["warnings", "Warning"], ["notes", "Note"]]
    .flatMap(([name, kind]) => (verdict[name] || []).map((one) => ruleItem(kind, one)));
  const said = (verdict.violations || []).length ? "not supported" : "supported";
  return [element("h4", {}, `${device}: ${said}`), ...(found.length ? [element("ul", {}, ...found)] : [])];
}

const panel = element("div", { class: "panel", role: "dialog", "aria-labelledby": "panel-title", tabindex: "-1", hidden: "" });
let origin = null;

function showLayer(layer, from) {
  const close = element("button", { type: "button", "aria-label": "Close", onclick: hideLayer }, "✕");
  panel.replaceChildren(
    element("div", { class: "panel-head" }, element("h3", { id: "panel-title" }, layer.name), close),
    facts([["kind", layer.kind], ["device", layer.device ?? "unplaced"], ["segment", layer.segment],
      ["precision", TYPES[layer.precision] || layer.precision], ["cause", layer.cause], ["ONNX nodes", layer.onnx_nodes.join(", ")]]),
    ...Object.entries(layer.verdicts).flatMap(([device, verdict]) => verdictBlock(device, verdict)),
  );
  panel.hidden = false;
  panel.scrollTop = 0;
  origin = from;
  panel.focus({ preventScroll: true });
}

function hideLayer() {
  if (panel.hidden) return;
  panel.hidden = true;
  if (origin) origin.focus({ preventScroll: true });
}

document.addEventListener("keydown", (event) => { if (event.key === "Escape") hideLayer(); });

// The map -------------------------------------------------------------------------------------------------------------

function openMap(figure) {
  const picture = figure.querySelector(".picture"), svg = picture.querySelector("svg");
  const whole = readLevel(svg.querySelector(":scope > .level"));
  const [, , minimum, outer] = numbers(svg.getAttribute("viewBox"));
  const above = outer - whole.height;
  const groups = [];
  let scale = 1, size = [minimum, outer], matches = [], match = -1;

  (function collect(level) {
    for (const node of level.nodes) {
      if (!node.inside) continue;
      groups.push(node);
      const fold = node.g.querySelector(":scope > .fold");
      const button = { role: "button", tabindex: "-1" };
      for (const [key, value] of Object.entries({ ...button, "aria-expanded": "false" })) fold.setAttribute(key, value);
      const unfold = drawn("g", { ...button, class: "unfold", display: "none", "aria-expanded": "true" }, node.g);
      node.g.insertBefore(unfold, fold);
      const card = fold.querySelector(".card");
      drawn("rect", { rx: 6, fill: "var(--background)", stroke: card.getAttribute("stroke") }, unfold);
      drawn("text", { x: 8, y: 15, "font-weight": 600 }, unfold, `▾ ${fold.querySelector("text").textContent}`);
      node.buttons = [fold, unfold];
      collect(node.inside);
    }
  })(whole);

  const isShown = (one) => one.getClientRects().length > 0;
  const focusable = () => [...svg.querySelectorAll(".layer, .fold, .unfold")].filter(isShown);
  let current = null;

  function makeCurrent(one) {
    if (current) current.setAttribute("tabindex", "-1");
    current = one;
    if (one) one.setAttribute("tabindex", "0");
  }

  function resize() {
    svg.setAttribute("viewBox", `0 0 ${size[0]} ${size[1]}`);
    svg.setAttribute("width", size[0] * scale);
    svg.setAttribute("height", size[1] * scale);
  }

  function update() {
    const [width, height] = place(whole);
    size = [Math.max(minimum, width), height + above];
    resize();
  }

  function setOpen(node, isOpen) {
    node.isOpen = isOpen;
    const [fold, unfold] = node.buttons;
    fold.setAttribute("display", isOpen ? "none" : "inline");
    unfold.setAttribute("display", isOpen ? "inline" : "none");
    node.inside.g.setAttribute("display", isOpen ? "inline" : "none");
  }

  function toggle(node, isOpen) {
    const before = node.g.getBoundingClientRect();
    setOpen(node, isOpen);
    update();
    const after = node.g.getBoundingClientRect();
    picture.scrollLeft += after.left + after.width / 2 - before.left - before.width / 2;
    picture.scrollTop += after.top - before.top;
    const shown = node.buttons[isOpen ? 1 : 0];
    makeCurrent(shown);
    shown.focus({ preventScroll: true });
  }

  function all(isOpen) {
    for (const node of groups) setOpen(node, isOpen);
    update();
    makeCurrent(focusable()[0]);
  }

  function zoom(by, x = picture.clientWidth / 2, y = picture.clientHeight / 2) {
    const old = scale;
    scale = Math.min(4, Math.max(0.02, scale * by));
    const at = [picture.scrollLeft + x, picture.scrollTop + y];
    resize();
    picture.scrollLeft = at[0] * scale / old - x;
    picture.scrollTop = at[1] * scale / old - y;
  }

  const fit = () => zoom(Math.min(picture.clientWidth / size[0], picture.clientHeight / size[1]) / scale);

  function center(one) {
    const [own, frame] = [one.getBoundingClientRect(), picture.getBoundingClientRect()];
    picture.scrollLeft += own.left + own.width / 2 - frame.left - frame.width / 2;
    picture.scrollTop += own.top + own.height / 2 - frame.top - frame.height / 2;
  }

  function reveal(one) {
    let isChanged = false;
    for (const node of groups) {
      if (node.isOpen || !node.g.contains(one)) continue;
      setOpen(node, true);
      isChanged = true;
    }
    if (isChanged) update();
    makeCurrent(one);
    center(one);
  }

  // Search

  const nodes = [...svg.querySelectorAll(".layer")].map((one) => ({ one, layer: LAYERS[Number(one.dataset.layer)] }));
  const words = ({ layer }) => JSON.stringify([layer.name, layer.kind, layer.onnx_nodes, layer.device, layer.precision,
    Object.values(layer.verdicts).map((found) => ["violations", "warnings"].map((kind) => (found[kind] || []).map((one) => one.rule)))]).toLowerCase();
  const status = element("span", { role: "status", class: "map-status" });

  function go(step) {
    if (!matches.length) return;
    if (match >= 0) matches[match].one.classList.remove("chosen");
    match = (match + step + matches.length) % matches.length;
    const { one, layer } = matches[match];
    one.classList.add("chosen");
    reveal(one);
    status.textContent = `${match + 1} of ${matches.length}: ${layer.name}`;
  }

  function look(text) {
    for (const { one } of matches) one.classList.remove("found", "chosen");
    const asked = text.trim().toLowerCase();
    matches = asked ? nodes.filter((node) => (node.words ??= words(node)).includes(asked)) : [];
    match = -1;
    for (const { one } of matches) one.classList.add("found");
    status.textContent = asked && !matches.length ? "No layer found" : "";
    go(1);
  }

  const search = element("input", { type: "search", "aria-label": "Find layers by name, kind, device or rule",
    placeholder: "Find by name, kind, rule", oninput: () => look(search.value) });
  search.addEventListener("keydown", (event) => { if (event.key === "Enter") go(event.shiftKey ? -1 : 1); });

  const button = (text, label, onclick) => element("button", { type: "button", "aria-label": label, title: label, onclick }, text);
  figure.insertBefore(element("div", { class: "map-tools" },
    search, button("+", "+, zoom in", () => zoom(1.25)), button("−", "−, zoom out", () => zoom(0.8)),
    button("1:1", "1:1, original size", () => zoom(1 / scale)), button("Fit", "Fit the whole graph", fit),
    ...(groups.length ? [button("Unfold", "Unfold all groups", () => all(true)), button("Fold", "Fold all groups", () => all(false))] : []),
    status), picture);
  figure.querySelector("figcaption").append(". Drag or use the arrow keys to move, + and − or Ctrl and the wheel to zoom; Enter or a click opens a layer or a group");

  // Pointer and keys

  let drag = null;
  picture.addEventListener("pointerdown", (event) => {
    if (event.button === 0 && event.pointerType === "mouse") drag = { x: event.clientX, y: event.clientY, isMoved: false };
  });
  window.addEventListener("pointermove", (event) => {
    if (!drag || !(event.buttons & 1)) return;
    const [dx, dy] = [event.clientX - drag.x, event.clientY - drag.y];
    if (!drag.isMoved && Math.hypot(dx, dy) < 5) return;
    picture.scrollLeft -= dx;
    picture.scrollTop -= dy;
    drag = { x: event.clientX, y: event.clientY, isMoved: true };
  });
  picture.addEventListener("dragstart", (event) => event.preventDefault());
  picture.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const frame = picture.getBoundingClientRect();
    zoom(Math.exp(-event.deltaY / 400), event.clientX - frame.left, event.clientY - frame.top);
  }, { passive: false });

  function activate(target) {
    const group = groups.find((node) => node.buttons.some((one) => one.contains(target)));
    const layer = target.closest(".layer");
    if (layer) {
      makeCurrent(layer);
      showLayer(LAYERS[Number(layer.dataset.layer)], layer);
    } else if (group) toggle(group, !group.isOpen);
    return Boolean(layer || group);
  }

  picture.addEventListener("click", (event) => {
    const isDragged = drag && drag.isMoved;
    drag = null;
    if (isDragged || activate(event.target)) event.preventDefault();
  });

  const MOVES = { ArrowDown: [0, 1], ArrowUp: [0, -1], ArrowRight: [1, 0], ArrowLeft: [-1, 0] };

  function neighbor(from, [dx, dy]) {
    const middle = (one) => { const box = one.getBoundingClientRect(); return [box.left + box.width / 2, box.top + Math.min(box.height, 30) / 2]; };
    const [x, y] = middle(from);
    let best = null, least = Infinity;
    for (const one of focusable()) {
      const [left, top] = middle(one);
      const ahead = (left - x) * dx + (top - y) * dy, aside = Math.abs((left - x) * dy) + Math.abs((top - y) * dx);
      const cost = ahead + 3 * aside;
      if (one !== from && ahead > 4 && cost < least) [best, least] = [one, cost];
    }
    return best;
  }

  picture.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const target = event.target;
    if (event.key === "+" || event.key === "=") zoom(1.25);
    else if (event.key === "-") zoom(0.8);
    else if (event.key === "0") fit();
    else if (target !== picture && (event.key === "Enter" || event.key === " ")) activate(target);
    else if (target !== picture && MOVES[event.key]) {
      const next = neighbor(target, MOVES[event.key]);
      if (next) {
        makeCurrent(next);
        next.focus({ preventScroll: true });
        center(next);
      }
    } else return;
    event.preventDefault();
  });

  // Print: pieces of the height of a page, cut between the nodes.

  const PAGE = 860;  // pixels of a page of A4 between its margins, less the heading
  let pieces = null;

  function cut(scaled) {
    const frame = svg.getBoundingClientRect(), unit = size[1] / frame.height;
    const taken = [...focusable(), ...svg.querySelectorAll(".end")].filter(isShown).filter((one) => !one.matches(".unfold"))
      .map((one) => one.getBoundingClientRect()).map((box) => [(box.top - frame.top) * unit - 4, (box.bottom - frame.top) * unit + 4]);
    const ends = [0];
    while (ends[ends.length - 1] < size[1]) {
      const start = ends[ends.length - 1];
      let end = start + PAGE / scaled;
      for (let hit = true; hit && end < size[1];) {
        const over = taken.filter(([top, bottom]) => top < end && bottom > end).map(([top]) => top);
        hit = over.length > 0;
        if (hit) end = Math.min(...over);
      }
      ends.push(Math.min(end > start ? end : start + PAGE / scaled, size[1]));
    }
    return ends;
  }

  window.addEventListener("beforeprint", () => {
    const ends = cut(Math.min(1, 680 / size[0]));
    if (ends.length < 3 || pieces) return;
    for (const child of svg.children) if (child.matches("g")) child.id = child.id || `graph-${child.className.baseVal}`;
    pieces = element("div", { class: "pieces", "aria-hidden": "true" });
    for (let index = 1; index < ends.length; index += 1) {
      const [top, height] = [ends[index - 1], ends[index] - ends[index - 1]];
      const piece = drawn("svg", { class: "graph", viewBox: `0 ${top} ${size[0]} ${height}`, width: size[0], height }, pieces);
      for (const [name, value] of [["font-family", "system-ui, sans-serif"], ["font-size", "11"], ["fill", "var(--text)"]]) piece.setAttribute(name, value);
      for (const child of svg.querySelectorAll(":scope > g")) drawn("use", { href: `#${child.id}` }, piece);
    }
    picture.append(pieces);
    figure.classList.add("is-cut");
  });
  window.addEventListener("afterprint", () => {
    if (pieces) pieces.remove();
    pieces = null;
    figure.classList.remove("is-cut");
  });

  for (const { one } of nodes) one.setAttribute("tabindex", "-1");
  makeCurrent(focusable()[0]);
  picture.scrollLeft = (picture.scrollWidth - picture.clientWidth) / 2;
}

for (const figure of document.querySelectorAll("figure.map")) openMap(figure);
document.body.append(panel);
