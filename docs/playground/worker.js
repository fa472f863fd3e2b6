// Runs podium beside the page, which stays responsive meanwhile: Python, compiled to WebAssembly, and podium's own wheel.

import { loadPyodide } from "./pyodide/pyodide.mjs";

/** Read a file of this site. */
async function contentOf(name) {
  const answer = await fetch(new URL(name, import.meta.url));
  if (!answer.ok) {
    throw new Error(`${name} cannot be loaded: ${answer.status} ${answer.statusText}`);
  }
  return new Uint8Array(await answer.arrayBuffer());
}

function report(text, done, total) {
  postMessage({ progress: { text, done, total } });
}

/** Load Python and podium. The sizes are those of the wheels; Python itself counts as much as all of them. */
async function started() {
  report("Loading Python", 0, 1);
  const { wheels } = JSON.parse(new TextDecoder().decode(await contentOf("assets.json")));
  const python = wheels.reduce((sum, each) => sum + each.bytes, 0);
  const pyodide = await loadPyodide({ indexURL: new URL("pyodide/", import.meta.url).href });
  let done = python;
  for (const wheel of wheels) {
    report(`Loading ${wheel.name.replace(/^.*\/|-.*$/g, "")}`, done, 2 * python);
    pyodide.unpackArchive(await contentOf(wheel.name), "wheel");
    done += wheel.bytes;
  }
  report("Starting podium", done, 2 * python);
  const playground = pyodide.pyimport("podium.playground").Playground();
  return {
    load: (files, config) => playground.load(pyodide.toPy(new Map(files)), config),
    ask: (question, number) => playground[question](number),
  };
}

const podium = started();

onmessage = async ({ data: { id, method, parameters } }) => {
  try {
    postMessage({ id, answer: JSON.parse((await podium)[method](...parameters)) });
  } catch (error) {
    postMessage({ id, failure: String(error.message ?? error) });
  }
};

// Told without being asked, too: a page whose podium cannot start says so at once.
podium.then(
  () => postMessage({ ready: true }),
  (error) => postMessage({ failed: String(error.message ?? error) }),
);
