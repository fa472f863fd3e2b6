// Draws the page from the data in it. Whatever comes from the cluster is shown with textContent: names are chosen by users.
"use strict";

const page = JSON.parse(document.getElementById("data").textContent);
const ABSENT = 255;
const NODES_NAMED_MAX = 60;
const ROW_PX = 3;
const MARGIN = {left: 54, right: 12, top: 8, bottom: 24};
const HEIGHT = 190;
const SVG = "http://www.w3.org/2000/svg";
const state = {at: page.times_s.length - 1};
const movers = [];

// ---------------------------------------------------------------- elements and words

function fill(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "text") made.textContent = value;
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

const make = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
const draw = (tag, attributes = {}, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

function duration(s) {
  if (s === 0) return "0 s";
  if (s < 1) return `${+(s * 1000).toFixed(1)} ms`;
  if (s < 60) return `${+s.toFixed(1)} s`;
  const [large, small, units] = s < 3600 ? [s / 60, s % 60, ["min", "s"]] : [s / 3600, s % 3600 / 60, ["h", "min"]];
  return `${Math.floor(large)} ${units[0]}${Math.floor(small) ? ` ${Math.floor(small)} ${units[1]}` : ""}`;
}

const clock = at => page.started_s === null ? "" :
  `, ${new Date((page.started_s + page.times_s[at]) * 1000).toISOString().slice(0, 19).replace("T", " ")} UTC`;
const amount = value => value === null ? "–" : typeof value === "number" && !Number.isInteger(value) ?
  String(+value.toPrecision(4)) : String(value);
const spoken = (value, unit) => value === null ? "–" : unit === "s" ? duration(value) : unit === "%" ? `${amount(value)} %` : amount(value);

// Round steps, so that four or five of them reach the highest value.
function ticks({most, unit}) {
  const rough = (most || 1) / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const round = [1, 2, 5, 10].map(each => each * power);
  const times = [60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400];
  let step = (unit === "s" && rough > 30 ? [...times, ...round] : round).find(each => each >= rough);
  if (unit === "pods") step = Math.max(1, step);
  return Array.from({length: Math.floor((most || 1) / step + 1e-9) + 1}, (_, at) => at * step);
}

// ---------------------------------------------------------------- charts

function frame(box, x, y) {
  const width = Math.max(box.clientWidth, 260);
  const svg = draw("svg", {viewBox: `0 0 ${width} ${HEIGHT}`, role: "img", "aria-label": box.dataset.label});
  const place = {
    x: value => MARGIN.left + value / (x.most || 1) * (width - MARGIN.left - MARGIN.right),
    y: value => HEIGHT - MARGIN.bottom - value / (y.most || 1) * (HEIGHT - MARGIN.top - MARGIN.bottom),
  };
  for (const tick of ticks(y)) {
    svg.append(draw("line", {class: "grid", x1: MARGIN.left, x2: width - MARGIN.right, y1: place.y(tick), y2: place.y(tick)}));
    svg.append(draw("text", {x: MARGIN.left - 6, y: place.y(tick) + 4, "text-anchor": "end", text: spoken(tick, y.unit)}));
  }
  const isNarrow = width < 500;
  for (const tick of ticks(x).filter((_, at) => !isNarrow || at % 2 === 0)) {
    const anchor = place.x(tick) > width - 40 ? "end" : "middle";
    svg.append(draw("text", {x: place.x(tick), y: HEIGHT - 6, "text-anchor": anchor, text: spoken(tick, x.unit)}));
  }
  box.replaceChildren(svg);
  return {svg, place};
}

// Drawn again when the width changes: letters keep their size.
function drawn(section, label, paint) {
  const box = make("div");
  box.dataset.label = label;
  let width = 0;
  new ResizeObserver(() => {
    if (box.clientWidth === width) return;
    width = box.clientWidth;
    paint(box);
  }).observe(box);
  section.append(box);
}

function lines(section, {title, unit, series}) {
  const all = Object.entries(series);
  const legend = make("p", {class: "legend"});
  const values = all.map(([name, of], at) => {
    const value = make("span");
    legend.append(make("span", {}, make("i", {class: `s${at % 6}`}), make("span", {text: `${name}: `}), value));
    return () => { value.textContent = spoken(of[state.at] ?? null, unit); };
  });
  const most = Math.max(...all.flatMap(([, of]) => of).filter(value => value !== null), unit === "s" ? 0.001 : 1);
  const last = page.times_s.at(-1);
  let cursor = null;
  drawn(section, `${title}, over time`, box => {
    const {svg, place} = frame(box, {most: last, unit: "s"}, {most, unit});
    all.forEach(([, of], index) => {
      // A look without a value does not break the line: what is known is joined.
      const points = of.map((value, at) => value === null ? null : [place.x(page.times_s[at]), place.y(value)]).filter(Boolean);
      const path = points.map(([x, y], at) => `${at ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join("");
      svg.append(draw("path", {class: `line s${index % 6}`, d: path || "M0 0"}));
    });
    const at = draw("line", {class: "cursor", y1: MARGIN.top, y2: HEIGHT - MARGIN.bottom});
    cursor = () => { for (const end of ["x1", "x2"]) at.setAttribute(end, place.x(page.times_s[state.at])); };
    cursor();
    svg.append(at);
  });
  section.append(legend);
  movers.push(() => { for (const show of values) show(); if (cursor) cursor(); });
}

function plot(section, {title, axes, points}) {
  const names = Object.keys(axes);
  const choose = (label, chosen) => {
    const select = make("select", {}, ...names.map(name => make("option", {value: name, text: axes[name]})));
    select.value = chosen;
    return [make("label", {}, `${label} `, select), select];
  };
  const [xLabel, xChoice] = choose("Across", names[0]);
  const [yLabel, yChoice] = choose("Up", names[1] ?? names[0]);
  section.append(make("p", {class: "controls"}, xLabel, yLabel));
  const told = make("p", {class: "note", role: "status", text: "Choose a point to read what it is."});
  let paint = () => {};
  drawn(section, title, box => {
    paint = () => {
      const [x, y] = [xChoice.value, yChoice.value];
      const known = points.filter(([, , values]) => (values[x] ?? null) !== null && (values[y] ?? null) !== null);
      const most = of => Math.max(...known.map(([, , values]) => values[of]), 0) * 1.05;
      const {svg, place} = frame(box, {most: most(x)}, {most: most(y)});
      for (const [name, isOnFront, values] of [...known].sort((one, other) => one[1] - other[1])) {
        const circle = draw("circle", {
          class: isOnFront ? "marked" : "", cx: place.x(values[x]), cy: place.y(values[y]), r: isOnFront ? 6 : 4.5,
        }, draw("title", {text: name}));
        circle.addEventListener("click", () => {
          for (const each of svg.querySelectorAll(".chosen")) each.classList.remove("chosen");
          circle.classList.add("chosen");
          told.textContent = `${name}: ${names.map(of => `${axes[of]} ${amount(values[of] ?? null)}`).join(", ")}`;
        });
        svg.append(circle);
      }
    };
    paint();
  });
  for (const choice of [xChoice, yChoice]) choice.addEventListener("change", () => paint());
  section.append(told);
}

function bars(section, {unit, pairs}) {
  const most = Math.max(...pairs.flatMap(([, before, after]) => [before, after]), unit === "%" ? 100 : 1);
  for (const [name, before, after] of pairs) {
    const row = make("div", {class: "bar"}, make("span", {text: name}), make("div"));
    for (const [when, value] of [["before", before], ["after", after]]) {
      const bar = make("i", {class: when, "aria-hidden": "true"});
      bar.style.width = `${100 * value / most}%`;
      row.lastChild.append(bar, make("span", {text: `${when} ${spoken(value, unit)}`}));
    }
    section.append(row);
  }
}

// ---------------------------------------------------------------- nodes over time

function heat(section, {nodes}) {
  const shares = nodes.map(([, , ...parts]) => parts.map(hex => hex.match(/../g)?.map(each => parseInt(each, 16)) ?? []));
  const choice = make("select", {"aria-label": "Resource"});
  for (const [value, text] of [["", "the fuller of CPU and memory"], ["0", "CPU"], ["1", "memory"]]) {
    choice.append(make("option", {value, text}));
  }
  const share = (node, at) => {
    const [cpu, memory] = [shares[node][0][at], shares[node][1][at]];
    if (cpu === ABSENT) return ABSENT;
    return choice.value === "" ? Math.max(cpu, memory) : [cpu, memory][+choice.value];
  };
  const shade = value => value === ABSENT ? "absent" : `h${Math.min(10, Math.floor(value / 10))}`;
  const slider = make("input", {type: "range", min: 0, max: page.times_s.length - 1, "aria-label": "Time"});
  slider.value = state.at;
  const time = make("output");
  const play = make("button", {type: "button", text: "Play"});
  section.append(make("p", {class: "controls"}, choice));

  const canvas = make("canvas", {role: "img", "aria-label": "Each node is a line, from the left to the right as time goes by"});
  const cursor = make("i");
  section.append(make("div", {class: "matrix"}, canvas, cursor), make("p", {class: "controls"}, play, slider, time));
  const paint = () => {
    const rows = Math.max(1, Math.min(ROW_PX, Math.floor(400 / Math.max(nodes.length, 1))));
    [canvas.width, canvas.height] = [Math.max(page.times_s.length, 1) * 8, Math.max(nodes.length, 1) * rows * (nodes.length < 20 ? 4 : 1)];
    const [across, down] = [8, canvas.height / Math.max(nodes.length, 1)];
    const context = canvas.getContext("2d");
    const probe = make("span", {class: "cell"});
    section.append(probe);
    const colours = {};
    for (const kind of ["absent", ...Array.from({length: 11}, (_, at) => `h${at}`)]) {
      probe.className = kind;
      colours[kind] = getComputedStyle(probe).backgroundColor;
    }
    probe.remove();
    nodes.forEach((_, node) => page.times_s.forEach((_, at) => {
      context.fillStyle = colours[shade(share(node, at))];
      context.fillRect(at * across, node * down, across, down);
    }));
  };

  const told = make("p", {id: "node", class: "note", role: "status", text: "Choose a node to read what it is."});
  const zones = new Map();
  nodes.forEach(([, zone], node) => zones.set(zone, [...(zones.get(zone) ?? []), node]));
  const cells = nodes.map(([name], node) => {
    const cell = make("button", {type: "button", class: "cell", tabindex: node ? "-1" : "0", title: name});
    cell.addEventListener("click", () => { state.node = node; tell(); });
    cell.addEventListener("focus", () => {
      for (const each of cells) each.setAttribute("tabindex", each === cell ? "0" : "-1");
    });
    return cell;
  });
  const order = [...zones.values()].flat();
  const list = make("div");
  list.addEventListener("keydown", event => {
    const step = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1}[event.key];
    if (!step) return;
    event.preventDefault();
    const next = order.indexOf(cells.indexOf(document.activeElement)) + step;
    cells[order[Math.max(0, Math.min(order.length - 1, next))]].focus();
  });
  for (const [zone, members] of zones) {
    const items = members.map(node => make("li", {}, cells[node]));
    list.append(make("div", {class: "zone"},
      make("h3", {}, zone || "no zone ", make("small", {text: ` ${members.length} nodes`})), make("ul", {class: "heat"}, ...items)));
  }
  const legend = make("p", {class: "legend"}, "Requested:");
  for (let tenth = 0; tenth <= 10; tenth += 2) legend.append(make("span", {class: `cell h${tenth}`, text: `${tenth * 10} %`}));
  legend.append(make("span", {class: "cell absent", text: "not there"}));
  section.append(legend, list, told);

  const tell = () => {
    if (state.node === undefined) return;
    const [name, zone] = nodes[state.node];
    const [cpu, memory] = shares[state.node].map(of => of[state.at]);
    const said = cpu === ABSENT ? "not there" : `CPU ${cpu} %, memory ${memory} %`;
    told.textContent = `${name}${zone ? ` in ${zone}` : ""}: ${said}`;
  };
  const move = () => {
    cells.forEach((cell, node) => {
      const value = share(node, state.at);
      const text = value === ABSENT ? "–" : String(value);
      cell.className = `cell ${shade(value)}`;
      cell.textContent = nodes.length <= NODES_NAMED_MAX ? `${nodes[node][0]} ${text}` : text;
      cell.setAttribute("aria-label", `${nodes[node][0]} ${text}${value === ABSENT ? "" : " %"}`);
    });
    const said = duration(page.times_s[state.at]) + clock(state.at);
    time.textContent = said;
    slider.setAttribute("aria-valuetext", said);
    cursor.style.left = `${100 * (state.at + 0.5) / page.times_s.length}%`;
    tell();
  };
  movers.push(move);
  slider.addEventListener("input", () => { state.at = +slider.value; moved(); });
  choice.addEventListener("change", () => { paint(); move(); });
  let timer = 0;
  play.addEventListener("click", () => {
    const stop = () => { clearInterval(timer); timer = 0; play.textContent = "Play"; };
    if (timer) { stop(); return; }
    if (state.at === page.times_s.length - 1) state.at = 0;
    play.textContent = "Stop";
    timer = setInterval(() => {
      state.at = Math.min(state.at + 1, page.times_s.length - 1);
      slider.value = state.at;
      moved();
      if (state.at === page.times_s.length - 1) stop();
    }, 120);
  });
  paint();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paint);
}

// ---------------------------------------------------------------- texts

function facts(section, {facts: known}) {
  const list = make("dl", {class: "facts"});
  for (const [name, value] of Object.entries(known)) list.append(make("dt", {text: name}), make("dd", {text: value}));
  section.append(list);
}

function table(section, {title, columns, rows, marked}) {
  const isNumber = columns.map((_, at) => rows.every(row => row[at] === null || typeof row[at] === "number"));
  const kind = at => isNumber[at] && rows.length ? "number" : "";
  const body = make("tbody");
  const head = make("tr");
  let sorted = null;
  const lines = rows.map((row, index) => make("tr", {class: marked.includes(index) ? "marked" : ""}, ...row.map((value, at) =>
    make(at ? "td" : "th", {class: kind(at), text: amount(value), ...(at ? {} : {scope: "row"})}))));
  columns.forEach((name, at) => {
    const button = make("button", {type: "button", text: name});
    const cell = make("th", {class: kind(at), scope: "col"}, button);
    button.addEventListener("click", () => {
      const sign = sorted === at ? -1 : 1;
      sorted = sign === 1 ? at : null;
      for (const each of head.children) each.removeAttribute("aria-sort");
      cell.setAttribute("aria-sort", sign === 1 ? "ascending" : "descending");
      const order = rows.map((_, index) => index).sort((a, b) => {
        const [one, other] = [rows[a][at], rows[b][at]];
        if (one === null || other === null) return (one === null) - (other === null);
        return sign * (isNumber[at] ? one - other : String(one) < String(other) ? -1 : 1);
      });
      body.append(...order.map(index => lines[index]));
    });
    head.append(cell);
  });
  body.append(...lines);
  section.append(make("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": title},
    make("table", {}, make("caption", {text: title}), make("thead", {}, head), body)));
}

const DRAW = {facts, table, lines, heat, bars, plot};
const isWide = ({kind, columns}) => kind === "table" ? columns.length > 2 : kind === "heat" || kind === "plot";

function moved() {
  for (const move of movers) move();
}

page.sections.forEach((data, index) => {
  const title = make("h2", {id: `title-${index}`, text: data.title});
  const section = make("section", {"aria-labelledby": `title-${index}`, class: isWide(data) ? "whole" : ""}, title);
  document.querySelector("main").append(section);
  DRAW[data.kind](section, data);
  if (data.note) section.append(make("p", {class: "note", text: data.note}));
});
moved();
