// The page: what is dropped on it, and which question is asked about which pod.

import { element, errors, RENDERED } from "./answers.js";
import { Podium } from "./podium.js";

const PASTED = "pasted";
const BROKEN_MAX = 10;
const PODS_MAX = 2000;
const YAML_SLOW_BYTES = 300_000;

const byId = (id) => document.getElementById(id);
const [drop, files, pasted, config, status, progress, faults] = [
  ...["drop", "files", "pasted", "config", "status", "progress", "faults"].map(byId),
];
const [questions, pods, panel] = ["questions", "pod", "answer"].map(byId);
const tabs = [...byId("tabs").children];

/** The files of the cluster, as [name, Uint8Array]. */
let chosen = [];
let question = "placement";
/** The answers about the cluster, by question and pod, as promises. */
let answers = new Map();

export const podium = new Podium({
  onProgress({ text, done, total }) {
    status.textContent = `${text} …`;
    progress.value = done / total;
  },
  onReady: () => idle("Ready."),
  onFailure: (text) => idle("podium cannot start here.", text),
});

function busy(text) {
  status.textContent = `${text} …`;
  progress.hidden = false;
  progress.removeAttribute("value");
}

function idle(text, ...wrong) {
  status.textContent = text;
  progress.hidden = true;
  faults.replaceChildren(...wrong.map(errors));
}

async function contentOf(list) {
  return Promise.all([...list].map(async (file) => [file.name, new Uint8Array(await file.arrayBuffer())]));
}

async function choose(list) {
  if (!list.length) return;
  forget();
  chosen = await contentOf(list);
  await read();
}

async function takeExample() {
  forget();
  try {
    const answer = await fetch("example.yaml");
    if (!answer.ok) throw new Error(answer.statusText);
    chosen = [["example.yaml", new Uint8Array(await answer.arrayBuffer())]];
  } catch (error) {
    idle("The example cluster cannot be loaded.", error.message);
    return;
  }
  await read();
}

/** Whether podium takes long to read a file: YAML, which is neither in braces nor compressed. */
function isSlow([, content]) {
  return content.length > YAML_SLOW_BYTES && content[0] !== 0x7b && content[0] !== 0x1f;
}

/** Show nothing of the cluster of before: another one is being read. */
function forget() {
  questions.hidden = true;
  answers = new Map();
  busy("Reading the cluster");
}

/** Have podium read the cluster, and offer its pods. */
async function read() {
  forget();
  const begun = answers;
  const text = pasted.value.trim();
  const all = text ? [...chosen, [PASTED, new TextEncoder().encode(text)]] : chosen;
  if (all.some(isSlow)) busy("Reading the cluster, which takes a while for YAML of this size; JSON is faster");
  try {
    const cluster = await podium.load(all, config.value);
    if (begun !== answers) return; // Another cluster has been chosen meanwhile.
    if (cluster.error !== undefined) {
      idle("The cluster cannot be read.", cluster.error);
    } else {
      offer(cluster);
    }
  } catch (error) {
    idle("podium failed.", error.message);
  }
}

function offer({ nodes, broken, pods: found }) {
  const more = broken.length > BROKEN_MAX ? [`and ${broken.length - BROKEN_MAX} more`] : [];
  const warning = broken.length
    ? [["These objects cannot be read in full, and answers may be off:", ...broken.slice(0, BROKEN_MAX), ...more].join("\n")]
    : [];
  const listed = found.length > PODS_MAX ? `, of which the first ${PODS_MAX} are listed` : "";
  const asked = counted(found.length, "pod or workload", "pods and workloads");
  idle(`${counted(nodes, "node")}, ${asked}${listed}.`, ...warning);
  if (!found.length) {
    idle("The cluster has no pods: add one as another file, or paste it.", ...warning);
    return;
  }
  pods.replaceChildren(
    ...found.slice(0, PODS_MAX).map(({ kind, name, node }, number) => {
      const where = kind === "Pod" ? (node ? ` on ${node}` : " (pending)") : "";
      return element("option", { value: number }, `${kind} ${name}${where}`);
    }),
  );
  questions.hidden = false;
  show(question);
}

function counted(count, one, several = `${one}s`) {
  return `${count} ${count === 1 ? one : several}`;
}

/** Show the answer to a question about the chosen pod, and ask it if it was not asked before. */
async function show(next) {
  question = next;
  for (const tab of tabs) {
    const isChosen = tab.dataset.question === question;
    tab.setAttribute("aria-selected", isChosen);
    tab.tabIndex = isChosen ? 0 : -1;
    if (isChosen) panel.setAttribute("aria-labelledby", tab.id);
  }
  const method = question === "fix" ? "why" : question;
  const key = `${method} ${pods.value}`;
  if (!answers.has(key)) answers.set(key, podium.ask(method, Number(pods.value)));
  const known = answers;
  const asked = `${question} ${pods.value}`;
  panel.setAttribute("aria-busy", "true");
  panel.replaceChildren(element("p", {}, "Asking podium …"));
  const parts = await known.get(key).then(
    (answer) => (answer.error === undefined ? RENDERED[next](answer) : [errors(answer.error)]),
    (error) => [errors(`podium failed: ${error.message}`)],
  );
  // Another question, pod or cluster may have been chosen meanwhile.
  if (known !== answers || asked !== `${question} ${pods.value}`) return;
  panel.replaceChildren(...parts.filter((part) => part !== null));
  panel.setAttribute("aria-busy", "false");
}

/** The arrow keys, Home and End move between tabs. */
function step(event) {
  const at = tabs.indexOf(event.target);
  const next = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: -1 }[event.key];
  if (at < 0 || next === undefined) return;
  event.preventDefault();
  const tab = tabs.at(next % tabs.length);
  tab.focus();
  show(tab.dataset.question);
}

files.addEventListener("change", () => choose(files.files));
byId("example").addEventListener("click", takeExample);
byId("read").addEventListener("click", read);
pods.addEventListener("change", () => show(question));
for (const tab of tabs) tab.addEventListener("click", () => show(tab.dataset.question));
byId("tabs").addEventListener("keydown", step);

// The whole page takes what is dropped: a file that misses the frame would replace the page.
addEventListener("dragover", (event) => {
  event.preventDefault();
  drop.classList.add("over");
});
addEventListener("dragleave", () => drop.classList.remove("over"));
addEventListener("drop", (event) => {
  event.preventDefault();
  drop.classList.remove("over");
  choose(event.dataTransfer.files);
});
