// The live page. Whatever comes from the cluster is shown with textContent: names are chosen by users.
"use strict";

const QUEUES = ["in flight", "active", "backoff", "error backoff", "unschedulable", "gated"];
const DECISIONS_MAX = 200;
const NODES_MAX = 20000;
const NODES_NAMED_MAX = 150;
const SILENCE_MS_MAX = 20000;
const BACKOFF_MS_MAX = 10000;

const byId = id => document.getElementById(id);
const tables = {queue: new Map(), decisions: new Map(), nodes: new Map()};
const state = {
  view: "queue", filter: "", paused: false, token: "", leader: null, counts: {}, attempts: [], ahead_s: 0,
  current: {}, pod: null, node: null, opener: null, recorder: true, fixes: false, fix: null, refusal: "",
};

// ---------------------------------------------------------------- elements and words

// Control characters and bidirectional marks, which would show words in another order.
const escaped = text => String(text ?? "").replace(/[\p{C}\p{Zl}\p{Zp}]/gu, each => `\\u{${each.codePointAt(0).toString(16)}}`);

function make(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "text") made.textContent = escaped(value);
    else made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

function setText(element, text) {
  const safe = escaped(text);
  if (element.textContent !== safe) element.textContent = safe;
}

const now_s = () => Date.now() / 1000 + state.ahead_s;

function duration(s) {
  if (s < 0.001) return `${(s * 1e6).toFixed(0)} µs`;
  if (s < 1) return `${(s * 1000).toFixed(s < 0.01 ? 2 : 0)} ms`;
  if (s < 60) return `${s.toFixed(0)} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${Math.floor(s % 60)} s`;
  return `${Math.floor(s / 3600)} h ${Math.floor(s % 3600 / 60)} min`;
}

const clock = s => new Date(s * 1000).toISOString().slice(11, 23);
const percent = (part, whole) => whole > 0 ? Math.round(100 * part / whole) : part > 0 ? 100 : 0;
const cores = milli => (milli / 1000).toFixed(milli % 1000 ? 1 : 0);
// Its verdict on all nodes begins with how many there are, which the reader sees elsewhere.
const shortened = message => message.replace(/^0\/\d+ nodes are available: /, "");
const nodesOf = count => `${count} ${count === 1 ? "node" : "nodes"}`;
// kube-scheduler's text suits any number of nodes, as "node(s) had untolerated taint(s)" does; beside a count it need not.
const reasonOf = (count, text) => text.startsWith("node(s) ")
  ? `${nodesOf(count)} ${text.slice("node(s) ".length).replaceAll("(s)", "s")}` : `${nodesOf(count)}: ${text}`;
// Of a time, what the tables beside it show.
const timeOfDay = text => text.replace(/\d{4}-\d\d-\d\dT(\d\d:\d\d:\d\d)Z/g, "$1");
const bytes = amount => amount >= 2 ** 30 ? `${(amount / 2 ** 30).toFixed(1)} Gi` : `${(amount / 2 ** 20).toFixed(0)} Mi`;
const devicesOf = node => Object.entries(node.devices ?? {})
  .map(([driver, [used, total]]) => `, ${used} of ${total} devices of ${driver}`).join("");
const utilisation = node => Math.max(percent(node.cpu, node.cpu_max), percent(node.memory, node.memory_max));

function nextTry(row) {
  const events = Object.entries(row.events).map(([plugin, of]) => `${plugin}: ${of.join(" or ") || "none"}`).join("; ");
  const until = row.next === null ? "" : row.next > now_s() ? `in ${duration(row.next - now_s())}` : "now";
  if (events) return `after an event of ${events}` + (until ? `, or ${until}` : "");
  return until || (row.queue === "active" ? "next" : "");
}

// ---------------------------------------------------------------- views: what each shows of the tables

const pill = (text, times = 1) => ({text: times > 1 ? `${text} ×${times}` : text, kind: text.replace(" ", "-")});

const VIEWS = {
  queue: {
    caption: "Pods in the queue",
    columns: [["Pod"], ["Queue"], ["Priority", "wide"], ["Attempts", "wide"], ["Waits"], ["Why"], ["Next try", "wide"]],
    empty: "No pods are waiting.",
    rows: () => [...tables.queue.values()].sort(
      (a, b) => QUEUES.indexOf(a.queue) - QUEUES.indexOf(b.queue) || a.since - b.since || (a.key < b.key ? -1 : 1)),
    label: row => `${row.namespace}/${row.name}`,
    cells: row => [
      pill(row.queue), String(row.priority), String(row.attempts), duration(Math.max(0, now_s() - (row.created ?? row.since))),
      shortened(row.reason) || row.plugins.join(", "), nextTry(row),
    ],
    open: row => openPod(row.namespace, row.name),
    count: () => Object.values(state.counts).reduce((sum, count) => sum + count, 0),
  },
  decisions: {
    caption: "Latest decisions, newest first",
    columns: [["Pod"], ["Time", "wide"], ["Result"], ["Node or reason"], ["Fit", "wide"], ["Decision", "wide"], ["Total", "wide"]],
    empty: "Nothing has been decided yet.",
    rows: foldedDecisions,
    label: row => `${row.namespace}/${row.name}`,
    cells: row => [
      clock(row.at), pill(row.result, row.times), row.node || shortened(row.message), `${row.feasible} of ${row.examined}`,
      duration(row.decision), row.total === null ? "" : duration(row.total),
    ],
    open: row => openPod(row.namespace, row.name),
    count: () => state.attempts.length ? state.attempts.at(-1)[1] : 0,
  },
  reasons: {
    caption: "Why pods wait, most frequent first",
    columns: [["Reason"], ["Pods"], ["Plugins"], ["For example"]],
    empty: "No pods are waiting for a reason.",
    rows: groupReasons,
    label: row => shortened(row.reason),
    cells: row => [`${row.count} ${row.count === 1 ? "pod" : "pods"}`, row.plugins, row.example],
    open: row => openPod(row.namespace, row.name),
    count: () => groupReasons().length,
  },
};

// The newest first. Retries of a pod that came to the same are one row, in the place of the last.
function foldedDecisions() {
  const folded = new Map();
  for (const row of [...tables.decisions.values()].sort((a, b) => b.key - a.key)) {
    const same = row.node ? row.key : JSON.stringify([row.namespace, row.name, row.result, row.message]);
    const last = folded.get(same);
    if (last === undefined) folded.set(same, {...row, times: 1});
    else last.times += 1;
  }
  return [...folded.values()];
}

function groupReasons() {
  const groups = new Map();
  for (const row of tables.queue.values()) {
    if (!row.reason) continue;
    const key = `${row.plugins.join(", ")}\n${row.reason}`;
    const group = groups.get(key) || {
      key, reason: row.reason, plugins: row.plugins.join(", "), count: 0, example: `${row.namespace}/${row.name}`,
      namespace: row.namespace, name: row.name,
    };
    group.count += 1;
    groups.set(key, group);
  }
  return [...groups.values()].sort((a, b) => b.count - a.count || (a.key < b.key ? -1 : 1));
}

const matches = texts => texts.join(" ").toLowerCase().includes(state.filter);
const textOf = cell => typeof cell === "string" ? cell : cell.text;

// ---------------------------------------------------------------- drawing

// Puts elements in order, and moves as few as possible: one that is moved would lose the focus.
function arrange(parent, keys, known, create) {
  const wanted = new Set(keys);
  for (const [key, element] of known) {
    if (!wanted.has(key)) { element.remove(); known.delete(key); }
  }
  let place = parent.firstElementChild;
  for (const key of keys) {
    let element = known.get(key);
    if (element === undefined) { element = create(key); known.set(key, element); }
    if (element === place) place = place.nextElementSibling;
    else parent.insertBefore(element, place);
  }
}

function makeItem(view, key, className) {
  const button = make("button", {type: "button", class: className, tabindex: "-1"});
  button.dataset.key = key;
  button.addEventListener("click", () => { state.current[view] = key; state.opener = button; button.open(); });
  button.addEventListener("focus", () => { state.current[view] = key; markCurrent(view); });
  return button;
}

// One item of a list is reached with Tab; j and k go from one to the next.
function markCurrent(view) {
  const items = [...byId(view).querySelectorAll("[data-key]")];
  const chosen = items.find(item => item.dataset.key === state.current[view]) || items[0];
  for (const item of items) {
    const index = item === chosen ? "0" : "-1";
    if (item.getAttribute("tabindex") !== index) item.setAttribute("tabindex", index);
  }
}

function setUpTable(name) {
  const view = VIEWS[name];
  const heads = view.columns.map(([text, kind = ""]) => make("th", {scope: "col", class: kind, text}));
  view.body = make("tbody");
  view.note = make("p", {class: "note"});
  view.known = new Map();
  const table = make("table", {}, make("caption", {text: view.caption}), make("thead", {}, make("tr", {}, ...heads)), view.body);
  byId(name).append(table, view.note);
}

function drawTable(name) {
  const view = VIEWS[name];
  const rows = view.rows().map(row => ({row, label: view.label(row), cells: view.cells(row)}));
  const shown = state.filter ? rows.filter(each => matches([each.label, ...each.cells.map(textOf)])) : rows;
  arrange(view.body, shown.map(each => String(each.row.key)), view.known, key => {
    const button = makeItem(name, key, "name");
    const line = make("tr", {}, make("th", {scope: "row"}, button));
    for (const [, kind = ""] of view.columns.slice(1)) line.append(make("td", {class: kind}, make("span")));
    line.addEventListener("click", event => { if (!button.contains(event.target)) button.click(); });
    return line;
  });
  for (const {row, label, cells} of shown) {
    const line = view.known.get(String(row.key));
    const button = line.firstElementChild.firstElementChild;
    setText(button, label);
    button.open = () => view.open(row);
    cells.forEach((cell, index) => {
      const span = line.children[index + 1].firstElementChild;
      setText(span, textOf(cell));
      const kind = typeof cell === "string" ? "" : `pill ${cell.kind}`;
      if (span.className !== kind) span.className = kind;
    });
  }
  setText(view.note, noteFor(name, rows.length, shown.length, view.empty));
  markCurrent(name);
}

function noteFor(name, all, shown, empty) {
  if (state.refusal) return `Nothing is shown: ${state.refusal}`;
  if (state.leader !== null && name !== "nodes") {
    return `This replica stands by; ${state.leader || "another one"} leads, and knows the reasons.`;
  }
  if (name === "decisions" && !state.recorder) return "The flight recorder is off: podium runs with --recorder-memory=0.";
  if (!all) return empty;
  if (!shown) return "Nothing matches the filter.";
  const total = name === "queue" ? VIEWS.queue.count() : all;
  return total > all ? `The ${all} pods are shown that wait longest in each queue, of ${total}.` : "";
}

const heat = {zones: new Map(), cells: new Map(), note: null};

function setUpNodes() {
  heat.zonesBox = make("div");
  heat.note = make("p", {class: "note"});
  heat.legend = make("p", {class: "legend"}, "Requested share (the higher of CPU and memory): ");
  for (let step = 0; step <= 10; step += 1) {
    heat.legend.append(make("span", {class: `cell h${step}`, text: step < 10 ? `${step * 10}` : "100 %"}));
  }
  byId("nodes").append(heat.legend, heat.zonesBox, heat.note);
}

function drawNodes() {
  const collator = new Intl.Collator("en", {numeric: true});
  const all = [...tables.nodes.values()];
  const found = all.filter(node => !state.filter || matches([node.key, node.zone, node.closed]));
  found.sort((a, b) => collator.compare(a.zone, b.zone) || collator.compare(a.key, b.key));
  const shown = found.slice(0, NODES_MAX);
  const zones = Map.groupBy ? Map.groupBy(shown, node => node.zone) : groupBy(shown, node => node.zone);
  arrange(heat.zonesBox, [...zones.keys()], heat.zones, zone => {
    const list = make("ul", {class: "heat"});
    const box = make("div", {class: "zone"}, make("h2"), list);
    box.known = new Map();
    return box;
  });
  for (const [zone, nodes] of zones) {
    const box = heat.zones.get(zone);
    setText(box.firstElementChild, `${zone || "no zone"}: ${nodesOf(nodes.length)}`);
    arrange(box.lastElementChild, nodes.map(node => node.key), box.known, key => make("li", {}, makeItem("nodes", key, "cell")));
    for (const node of nodes) {
      const button = box.known.get(node.key).firstElementChild;
      const share = utilisation(node);
      const kind = `cell h${Math.min(10, Math.floor(share / 10))}${node.closed ? " closed" : ""}`;
      if (button.className !== kind) button.className = kind;
      setText(button, shown.length > NODES_NAMED_MAX ? `${share}` : `${node.key} ${share}`);
      // It begins with the text that is seen, for those who speak to their browser.
      const label = escaped(`${node.key} ${share} %: cpu ${percent(node.cpu, node.cpu_max)} %, memory ${percent(node.memory, node.memory_max)} %, `
        + `${node.pods} of ${node.pods_max} pods${devicesOf(node)}${node.closed ? `, ${node.closed}` : ""}`);
      if (button.title !== label) { button.title = label; button.setAttribute("aria-label", label); }
      button.open = () => openNode(node.key);
    }
  }
  const more = found.length - shown.length;
  setText(heat.note, more ? `${more} more nodes: filter them with /.` : state.refusal ? noteFor("nodes", 0, 0, "") : found.length ? "" : all.length ? "Nothing matches the filter." : "There are no nodes.");
  markCurrent("nodes");
}

const groupBy = (items, keyOf) => items.reduce((groups, item) => {
  const key = keyOf(item);
  return groups.set(key, [...(groups.get(key) || []), item]);
}, new Map());

function drawHeader() {
  const counts = byId("counts");
  if (!counts.children.length) {
    for (const queue of [...QUEUES, "decisions/s"]) {
      counts.append(make("div", {class: queue.replace(" ", "-").replace("/", "-")}, make("dt", {text: queue}), make("dd")));
    }
  }
  const shown = count => state.refusal ? "–" : String(count);
  QUEUES.forEach((queue, index) => setText(counts.children[index].lastElementChild, shown(state.counts[queue] ?? 0)));
  const [first, last] = [state.attempts[0], state.attempts.at(-1)];
  const rate = first && last[0] > first[0] ? (last[1] - first[1]) / (last[0] - first[0]) : 0;
  setText(counts.lastElementChild.lastElementChild, shown(rate ? rate.toFixed(rate < 10 ? 1 : 0) : 0));
  for (const name of ["queue", "decisions", "reasons"]) setText(byId(`tab-${name}`).lastElementChild, shown(VIEWS[name].count()));
  setText(byId("tab-nodes").lastElementChild, shown(tables.nodes.size));
}

function draw() {
  drawHeader();
  if (state.view === "nodes") drawNodes();
  else drawTable(state.view);
  if (state.node !== null) drawNode();
}

let isDrawing = false;
function drawSoon() {
  if (isDrawing || state.paused) return;
  isDrawing = true;
  requestAnimationFrame(() => { isDrawing = false; draw(); });
}

// ---------------------------------------------------------------- the panel: why, and one node

function section(title, ...children) {
  return make("section", {}, make("h3", {text: title}), ...children);
}

function simpleTable(caption, heads, rows) {
  return make("div", {class: "scroll", tabindex: "0", role: "region", "aria-label": caption}, make("table", {},
    make("caption", {text: caption}),
    make("thead", {}, make("tr", {}, ...heads.map(text => make("th", {scope: "col", text})))),
    make("tbody", {}, ...rows.map(cells => make("tr", {}, ...cells.map(text => make("td", {text: String(text)})))))));
}

function showPanel(title) {
  setText(byId("panel-title"), title);
  byId("panel").hidden = false;
  document.body.classList.add("with-panel");
  byId("panel-title").focus();
}

function closePanel() {
  byId("panel").hidden = true;
  document.body.classList.remove("with-panel");
  state.pod = state.node = null;
  if (state.opener && state.opener.isConnected) state.opener.focus();
}

function openPod(namespace, name) {
  state.node = state.fix = null;
  state.pod = {namespace, name};
  byId("panel-body").replaceChildren(make("p", {class: "note", text: "asking podium …"}));
  showPanel(`${namespace}/${name}`);
  explain();
}

let isExplaining = false, isExplainedAgain = false;
async function explain() {
  if (isExplaining) { isExplainedAgain = true; return; }
  isExplaining = true;
  const asked = state.pod;
  let content;
  try {
    const path = `debug/pods/${encodeURIComponent(asked.namespace)}/${encodeURIComponent(asked.name)}`;
    const answer = await fetch(path, {headers: headers(), cache: "no-store"});
    const told = await answer.json();
    content = answer.ok ? explanation(told) : [make("p", {class: "note", text: told.error || told.message || `status ${answer.status}`})];
  } catch (error) {
    content = [make("p", {class: "note", text: `podium does not answer: ${error.message}`})];
  }
  isExplaining = false;
  if (state.pod === asked) byId("panel-body").replaceChildren(...content);
  if (isExplainedAgain && state.pod !== null) { isExplainedAgain = false; setTimeout(() => state.pod && explain(), 500); }
}

function explanation(told) {
  const found = [];
  const where = told.bound_to ? `Bound to ${told.bound_to}.` : told.queue ? `Queue: ${told.queue.queue}.` : told.exists ? "Pending." : "Deleted.";
  found.push(make("p", {class: "where", text: where}));
  if (told.queue && told.queue.nextTry) found.push(make("p", {text: `Next try: ${timeOfDay(told.queue.nextTry.text)}.`}));
  if (told.queue && told.queue.reason && !told.why) found.push(make("p", {text: told.queue.reason}));
  const why = told.why;
  if (why) {
    if (why.verdict) found.push(make("p", {class: "verdict", text: `${why.verdict}.`}));
    if (why.message) found.push(make("p", {text: why.message}));
    if (why.groups.length) {
      found.push(section("Nodes that do not fit", make("ul", {class: "groups"}, ...why.groups.map(group => make("li", {},
        make("strong", {text: reasonOf(group.count, group.text)}),
        make("span", {text: `${group.plugin}, such as ${group.examples.join(", ")}`}))))));
      if (!told.bound_to && told.exists) found.push(fixSection());
    }
    if (why.scores.length) {
      const isZero = plugin => why.scores.every(score => !score.plugins[plugin]);
      const plugins = Object.keys(why.scores[0].plugins).filter(plugin => !isZero(plugin));
      const zeros = Object.keys(why.scores[0].plugins).filter(isZero);
      const note = zeros.length ? [make("p", {class: "note", text: `0 for each of these nodes: ${zeros.join(", ")}.`})] : [];
      // Plugins below each other: side by side, ten of them would be wider than any panel.
      found.push(section("Scores", simpleTable("The best nodes by score", ["Plugin", ...why.scores.map(score => score.node)], [
        ["Total", ...why.scores.map(score => score.total)],
        ...plugins.map(plugin => [plugin, ...why.scores.map(score => score.plugins[plugin] ?? "")]),
      ]), ...note));
    }
  }
  if (told.devices?.length) {
    found.push(section("Missing devices", ...told.devices.map(shortage =>
      make("p", {text: `${nodesOf(shortage.count)}, such as ${shortage.examples.join(", ")}: ${shortage.text}`}))));
  }
  if (told.gang) found.push(section("Its gang", ...told.gang.text.map(text => make("p", {text}))));
  if (told.attempts.length) found.push(section("Attempts", attemptsTable(told.attempts)));
  const story = (told.queue ? told.queue.story : told.attempts.length ? told.attempts[0].story : []).toReversed();
  if (story.length) {
    found.push(section("Way through the queue", simpleTable("Transitions, the newest first", ["Time", "Event", "Queue"],
      story.map(each => [each.at.slice(11, 23), each.plugin ? `${each.event}, by ${each.plugin}` : each.event, `${each.from} to ${each.to}`]))));
  }
  return found;
}

// What would make the pod fit. A search lists the whole cluster, so each pod is asked about once, until its panel opens again.
function fixSection() {
  const command = `podium why ${state.pod.namespace}/${state.pod.name} --fix`;
  const title = "What would make it fit";
  if (!state.fixes) return section(title, make("p", {}, "Ask: ", make("code", {text: command})));
  if (state.fix?.pod !== state.pod) {
    const fix = state.fix = {pod: state.pod, answer: null, box: section(title, make("p", {class: "note", text: "looking for the smallest changes …"}))};
    askForFixes(fix.pod).then(answer => fix.box.replaceChildren(make("h3", {text: title}), ...fixTexts(answer, command)));
  }
  return state.fix.box;
}

async function askForFixes(pod) {
  try {
    const path = `debug/pods/${encodeURIComponent(pod.namespace)}/${encodeURIComponent(pod.name)}/fix`;
    return await (await fetch(path, {headers: headers(), cache: "no-store"})).json();
  } catch (error) {
    return {error: `podium does not answer: ${error.message}`};
  }
}

function fixTexts(answer, command) {
  const ask = make("p", {class: "note"}, answer.fixes?.length ? "With the patches: " : "In a terminal: ", make("code", {text: command}));
  if (answer.error || answer.problem) return [make("p", {text: `No answer: ${answer.error || answer.problem}.`}), ask];
  if (answer.fits) return [make("p", {text: "It fits as it is, in the cluster of this moment."})];
  const subject = answer.gang ? `the whole gang ${answer.gang}` : "the pod";
  if (!answer.fixes.length) {
    return [make("p", {text: answer.partial ? "Nothing was found in time." : `No set of up to three changes makes ${subject} fit.`}), ask];
  }
  const list = make("ul", {class: "groups"}, ...answer.fixes.map(fix => make("li", {},
    make("strong", {text: fix.edits.join(" and ")}), make("span", {text: `then it goes to ${fix.node}`}))));
  return [make("p", {text: `Each of these makes ${subject} fit:`}), list, ask];
}

// One row for neighbours with the same outcome.
function attemptsTable(attempts) {
  const runs = [];
  for (const attempt of attempts) {
    const last = runs.at(-1);
    if (last && !attempt.node && last.result === attempt.result && last.message === attempt.message) last.first = attempt.attempt;
    else runs.push({...attempt, first: attempt.attempt});
  }
  const numbers = run => run.first === run.attempt ? run.attempt : `${run.first} to ${run.attempt}`;
  return simpleTable("The last attempts", ["Time", "Attempt", "Result", "Node or reason", "Decision"],
    runs.map(run => [run.at.slice(11, 19), numbers(run), run.result, run.node || shortened(run.message ?? ""), duration(run.decisionSeconds)]));
}

function openNode(name) {
  state.pod = null;
  state.node = name;
  drawNode();
  showPanel(name);
}

function drawNode() {
  const node = tables.nodes.get(state.node);
  const body = byId("panel-body");
  if (node === undefined) { body.replaceChildren(make("p", {text: "The node was deleted."})); return; }
  const placed = [...tables.decisions.values()].filter(each => each.node === node.key).sort((a, b) => b.key - a.key);
  const content = [
    make("p", {class: "where", text: `Zone: ${node.zone || "none"}.${node.closed ? ` Takes no new pods: ${node.closed}.` : ""}`}),
    section("Requested", simpleTable("What its pods request", ["Resource", "Requested", "Allocatable", "Share"], [
      ["cpu", cores(node.cpu), cores(node.cpu_max), `${percent(node.cpu, node.cpu_max)} %`],
      ["memory", bytes(node.memory), bytes(node.memory_max), `${percent(node.memory, node.memory_max)} %`],
      ["pods", node.pods, node.pods_max, `${percent(node.pods, node.pods_max)} %`],
      ...Object.entries(node.others ?? {}).map(([name, [used, most]]) =>
        [name, ...[used, most].map(amount => amount >= 2 ** 20 ? bytes(amount) : amount), `${percent(used, most)} %`]),
    ])),
  ];
  const devices = Object.entries(node.devices ?? {});
  if (devices.length) {
    content.push(section("Devices", simpleTable("Devices that it can reach, by driver", ["Driver", "Allocated", "Devices"],
      devices.map(([driver, [used, total]]) => [driver, used, total]))));
  }
  if (node.taints?.length) content.push(section("Taints", ...node.taints.map(text => make("p", {}, make("code", {text})))));
  if (placed.length) {
    content.push(section("Placed here lately", simpleTable("The last decisions for this node", ["Time", "Pod", "Result"],
      placed.slice(0, 20).map(each => [clock(each.at), `${each.namespace}/${each.name}`, each.result]))));
  }
  const shown = JSON.stringify([node, placed.slice(0, 20).map(each => [each.key, each.result])]);
  if (body.dataset.shown === shown && body.firstElementChild) return;
  body.replaceChildren(...content);
  body.dataset.shown = shown;
}

// ---------------------------------------------------------------- the stream

const headers = () => state.token ? {Authorization: `Bearer ${state.token}`} : {};
const pause = ms => new Promise(done => setTimeout(done, ms));

function tell(text, kind) {
  setText(byId("connection"), text);
  byId("connection").dataset.state = kind;
}

function apply(told) {
  if (told.about) {
    setText(byId("about"), `${told.about.version} · ${told.about.schedulers.join(", ")}`);
    state.recorder = told.about.recorder;
    state.fixes = Boolean(told.about.fixes);
    state.attempts = [];
  }
  state.ahead_s = told.at - Date.now() / 1000;
  state.leader = told.leader;
  state.counts = told.counts;
  state.attempts = [...state.attempts.filter(([at]) => at > told.at - 5), [told.at, told.attempts]];
  let concerns = false;
  for (const [name, rows] of Object.entries(tables)) {
    const changes = told[name];
    if (!changes) continue;
    if (changes.reset) rows.clear();
    for (const key of changes.gone) rows.delete(key);
    for (const row of changes.put) {
      rows.set(row.key, row);
      concerns ||= state.pod !== null && row.name === state.pod.name && row.namespace === state.pod.namespace;
    }
  }
  while (tables.decisions.size > DECISIONS_MAX) tables.decisions.delete(tables.decisions.keys().next().value);
  if (concerns && !state.paused) explain();
  drawSoon();
}

async function* eventsOf(body, alive) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  for (let text = ""; ;) {
    const {done, value} = await reader.read();
    if (done) return;
    alive();
    text += value;
    const events = text.split("\n\n");
    text = events.pop();
    for (const event of events) yield JSON.parse(event.slice("data: ".length));
  }
}

async function follow() {
  const ending = new AbortController();
  let timer = setTimeout(() => ending.abort(), SILENCE_MS_MAX);
  const alive = () => { clearTimeout(timer); timer = setTimeout(() => ending.abort(), SILENCE_MS_MAX); };
  try {
    const answer = await fetch("ui/events", {headers: headers(), cache: "no-store", signal: ending.signal});
    if (answer.status === 401) return state.token ? "podium does not accept this token." : "podium does not know who you are, and needs a token.";
    if (answer.status === 403) {
      const message = (await answer.json()).message;
      const isUnknown = !state.token && message.includes("system:anonymous");
      return `${isUnknown ? "podium does not know who you are" : "you may not read this page"} (${message}).`;
    }
    state.refusal = "";
    byId("again").hidden = true;
    if (!answer.ok) throw new Error((await answer.text()).trim() || `status ${answer.status}`);
    tell(state.paused ? "paused" : "live", state.paused ? "waiting" : "live");
    for await (const told of eventsOf(answer.body, alive)) apply(told);
    return "";
  } finally {
    clearTimeout(timer);
  }
}

async function stayConnected() {
  for (let backoff_ms = 500; ;) {
    try {
      const refusal = await follow();
      if (refusal) { askForToken(refusal); return; }
      backoff_ms = 500;
    } catch (error) {
      tell(`not connected: ${error.message}`, "lost");
      await pause(backoff_ms);
      backoff_ms = Math.min(2 * backoff_ms, BACKOFF_MS_MAX);
    }
  }
}

function askForToken(reason) {
  tell("no access", "lost");
  state.refusal = reason;
  byId("again").hidden = false;
  setText(byId("access-reason"), `Nothing is shown: ${reason}`);
  draw();
  if (!byId("access").open) byId("access").showModal();
  byId("token").focus();
}

// ---------------------------------------------------------------- keys

function choose(view) {
  state.view = view;
  for (const tab of byId("tabs").children) {
    const isChosen = tab.id === `tab-${view}`;
    tab.setAttribute("aria-selected", String(isChosen));
    tab.setAttribute("tabindex", isChosen ? "0" : "-1");
    byId(tab.getAttribute("aria-controls")).hidden = !isChosen;
  }
  draw();
}

function move(step) {
  const items = [...byId(state.view).querySelectorAll("[data-key]")];
  if (!items.length) return;
  const at = items.findIndex(item => item.dataset.key === state.current[state.view]);
  const isInside = byId(state.view).contains(document.activeElement) && document.activeElement.dataset.key !== undefined;
  const target = step === Infinity ? items.length - 1 : step === -Infinity ? 0 : isInside ? at + step : Math.max(at, 0);
  const item = items[Math.max(0, Math.min(items.length - 1, target))];
  item.focus();
  item.scrollIntoView({block: "nearest"});
}

function togglePause() {
  state.paused = !state.paused;
  byId("pause").setAttribute("aria-pressed", String(state.paused));
  if (byId("connection").dataset.state !== "lost") tell(state.paused ? "paused" : "live", state.paused ? "waiting" : "live");
  if (!state.paused) draw();
}

function setFilter(text) {
  byId("filter").value = text;
  state.filter = text.trim().toLowerCase();
  draw();
}

function escape() {
  if (!byId("panel").hidden) closePanel();
  else if (state.filter) setFilter("");
  else document.activeElement.blur();
}

const KEYS = {
  1: () => choose("queue"), 2: () => choose("decisions"), 3: () => choose("nodes"), 4: () => choose("reasons"),
  j: () => move(1), k: () => move(-1), ArrowDown: () => move(1), ArrowUp: () => move(-1),
  g: () => move(-Infinity), G: () => move(Infinity), p: togglePause, Escape: escape,
  "/": () => byId("filter").focus(), "?": () => byId("help").showModal(),
};

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (event.target === byId("filter")) {
    if (event.key === "Escape") { setFilter(""); byId("filter").blur(); }
    if (event.key === "Enter" || event.key === "ArrowDown") { event.preventDefault(); move(0); }
    return;
  }
  const tabs = [...byId("tabs").children];
  if (tabs.includes(event.target) && (event.key === "ArrowRight" || event.key === "ArrowLeft")) {
    const next = tabs[(tabs.indexOf(event.target) + (event.key === "ArrowRight" ? 1 : tabs.length - 1)) % tabs.length];
    choose(next.getAttribute("aria-controls"));
    next.focus();
    return;
  }
  const isInPanel = byId("panel").contains(event.target);
  if (isInPanel && event.key.startsWith("Arrow")) return;
  if (Object.hasOwn(KEYS, event.key)) { event.preventDefault(); KEYS[event.key](); }
}

function start() {
  for (const name of Object.keys(VIEWS)) setUpTable(name);
  setUpNodes();
  for (const tab of byId("tabs").children) tab.addEventListener("click", () => choose(tab.getAttribute("aria-controls")));
  byId("filter").addEventListener("input", event => setFilter(event.target.value));
  byId("pause").addEventListener("click", togglePause);
  byId("keys").addEventListener("click", () => byId("help").showModal());
  byId("close").addEventListener("click", closePanel);
  byId("again").addEventListener("click", () => askForToken(state.refusal));
  byId("access-form").addEventListener("submit", event => {
    event.preventDefault();
    state.token = byId("token").value.trim();
    byId("token").value = "";
    byId("access").close();
    stayConnected();
  });
  document.addEventListener("keydown", onKey);
  setInterval(drawSoon, 1000);  // times go on though nothing changes
  draw();
  stayConnected();
}

start();
