// podium's answers as elements. Whatever comes from a cluster becomes text, never markup.

const BEST_MAX = 50;

/** An element with attributes and children, which are elements or text. */
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== undefined) made.setAttribute(key, value);
  }
  made.append(...children.filter((each) => each !== null && each !== undefined && each !== ""));
  return made;
}

/** The answer to each question of the page's tabs, as elements. */
export const RENDERED = { placement, why, fix, capacity };

/** An error of podium's, which may have several lines. */
export function errors(text) {
  return element("div", { class: "error", role: "alert" }, ...text.split("\n").map((line) => element("p", {}, line)));
}

function placement(answer) {
  const parts = [headline(answer, Object.keys(answer.filter).length + answer.feasible.length)];
  parts.push(...(answer.preenqueue ?? []).map((gate) => note(`But it would not be tried yet: ${reasons(gate)}`)));
  if (answer.scores) {
    parts.push(scores(Object.entries(answer.scores).map(([node, of]) => ({ node, ...of })), answer.node));
  }
  if (answer.nominated) {
    parts.push(note(`It would be nominated to ${answer.nominated} after ${answer.victims.join(", ")} left.`));
  }
  const rejected = Object.entries(answer.filter);
  if (rejected.length) {
    const details = answer.details ?? {};
    const rows = rejected.map(([node, status]) => [node, status.plugin, withDetail((status.reasons ?? []).join(", "), details[node])]);
    parts.push(table("Nodes that do not fit", ["Node", "Plugin", "Why"], rows));
  } else if (answer.prefilter.code !== "Success") {
    parts.push(note(reasons(answer.prefilter)));
  }
  return [...parts, ...unknown(answer)];
}

function why(answer) {
  const parts = [headline(answer, answer.nodes)];
  parts.push(...(answer.gates ?? []).map((gate) => note(`It would not be tried yet: ${reasons(gate)}`)));
  if (answer.scores.length) {
    parts.push(scores(answer.scores, answer.node), note(answer.verdict ?? ""));
  }
  if (answer.groups.length) {
    const rows = answer.groups.map((each) => [each.count, each.plugin, each.text, each.examples.join(", ")]);
    const caption = answer.node === null ? "Blockers" : "Blockers on the other nodes";
    parts.push(table(caption, ["Nodes", "Plugin", "Why", "Such as"], rows, [0]));
  }
  if (answer.node === null && answer.one_edit_away) {
    const count = answer.one_edit_away.length;
    const names = answer.one_edit_away.slice(0, 3).join(", ");
    parts.push(note(`${count} ${count === 1 ? "node is" : "nodes are"} one edit away${names && `: ${names}`}`));
  }
  parts.push(note(answer.preemption ?? ""));
  return [...parts, ...unknown(answer)];
}

function fix(answer) {
  if (answer.fits) return [element("p", { class: "headline" }, strong(answer.pod), " fits as it is."), ...unknown(answer)];
  if (!answer.fixes.length) {
    return [element("p", { class: "headline" }, "No small set of edits lets ", strong(answer.pod), " fit."), ...unknown(answer)];
  }
  const items = answer.fixes.map((each) =>
    element(
      "li",
      {},
      each.edits.map((edit) => edit.text).join(" and "),
      ": fits on ",
      strong(each.node),
      ...each.edits.filter((edit) => edit.patch).map((edit) => patch(edit)),
    ),
  );
  return [
    element("p", { class: "headline" }, strong(answer.pod), " fits after any one of these:"),
    element("ol", { class: "fixes" }, ...items),
    ...unknown(answer),
  ];
}

function patch({ object, patch: operations }) {
  const name = object.namespace ? `${object.namespace}/${object.name}` : object.name;
  return element("pre", { tabindex: 0 }, `${object.kind} ${name}: ${JSON.stringify(operations)}`);
}

function capacity(answer) {
  const fits = `${answer.at_least ? "at least " : ""}${answer.fits.toLocaleString("en")}`;
  const parts = [element("p", { class: "headline" }, strong(fits), " more of ", strong(answer.pod), " fit.")];
  if (answer.gate) parts.push(note(`It would not be tried: ${answer.gate}`));
  const limits = Object.entries(answer.limits).map(([limit, count]) => [count, limit]);
  if (limits.length) parts.push(table("What blocks the next one", ["Nodes", "Limit"], limits, [0]));
  const nodes = [...answer.nodes].sort((a, b) => b.fits - a.fits || compare(a.node, b.node));
  const rows = nodes.map((each) => [each.node, each.zone, each.fits, each.limit]);
  parts.push(table("By node", ["Node", "Zone", "Fits", "What blocks the next one"], rows, [2]));
  return [...parts, ...unknown(answer)];
}

function headline(answer, count) {
  if (answer.node === null) {
    return element("p", { class: "headline" }, strong(answer.pod), " fits on no node: ", answer.message ?? "");
  }
  const fits = Array.isArray(answer.scores) ? answer.scores.length : answer.feasible.length;
  const would = answer.bound_to ? ` is on ${answer.bound_to}. If it were pending now, it would fit` : " fits";
  const text = `${would} on ${fits} of ${count} nodes and ${answer.bound_to ? "" : "would "}go to `;
  return element("p", { class: "headline" }, strong(answer.pod), text, strong(answer.node), ".");
}

/** The scores by plugin, the winner first. */
function scores(found, winner) {
  const sorted = [...found].sort(
    (a, b) => (b.node === winner) - (a.node === winner) || b.total - a.total || compare(a.node, b.node),
  );
  const shown = sorted.slice(0, BEST_MAX);
  const plugins = Object.keys(shown[0].plugins ?? {});
  const rows = shown.map((each) => [each.node, each.total, ...plugins.map((name) => each.plugins[name] ?? 0)]);
  const more = sorted.length > shown.length ? ` (the best ${shown.length} of ${sorted.length})` : "";
  const headings = ["Node", "Total", ...plugins.map((name) => name.replace(/(?<=[a-z])(?=[A-Z])/g, " "))];
  return table(`Scores${more}`, headings, rows, [...headings.keys()].slice(1));
}

/** What the answer does not know: kinds that the files have none of, and objects that cannot be read. */
function unknown({ missing = [] }) {
  if (!missing.length) return [];
  return [
    note(`The answer depends on ${missing.join(", ")}, and the files hold none. If the cluster has any, add them: `),
    element("pre", { tabindex: 0 }, `kubectl get ${missing.join(",")} -A -o json`),
  ];
}

function table(caption, headings, rows, numbers = []) {
  const styled = (index) => ({ class: numbers.includes(index) ? "number" : undefined });
  const head = headings.map((text, index) => element("th", { scope: "col", ...styled(index) }, text));
  const body = rows.map((row) =>
    element("tr", {}, ...row.map((cell, index) => element("td", styled(index), cell === undefined ? "" : String(cell)))),
  );
  const whole = element("table", {}, element("caption", {}, caption), element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...body));
  // A wide table scrolls within its frame, also by keyboard.
  return element("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption }, whole);
}

function note(text) {
  return text ? element("p", {}, text) : null;
}

function strong(text) {
  return element("strong", {}, text);
}

function reasons(status) {
  return `${(status.reasons ?? []).join(", ")}${status.plugin ? ` (${status.plugin})` : ""}`;
}

function withDetail(text, detail) {
  return detail ? `${text} (${detail})` : text;
}

function compare(a, b) {
  return a < b ? -1 : a > b ? 1 : 0;
}
