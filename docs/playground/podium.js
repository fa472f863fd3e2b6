// podium as the page sees it: questions, and promises of their answers.

/** podium, running in a worker. `onProgress`, `onReady` and `onFailure` say how far it is. */
export class Podium {
  #worker;
  #waiting = new Map();
  #asked = 0;

  /** @param {{onProgress: Function, onReady: Function, onFailure: Function}} listener */
  constructor(listener) {
    // A worker from a blob has this page's Content-Security-Policy; one from a file would have none of its own.
    const script = `import ${JSON.stringify(new URL("worker.js", import.meta.url).href)};`;
    const url = URL.createObjectURL(new Blob([script], { type: "text/javascript" }));
    this.#worker = new Worker(url, { type: "module" });
    this.#worker.onmessage = ({ data }) => {
      if (data.progress) listener.onProgress(data.progress);
      else if (data.ready) listener.onReady();
      else if (data.failed) listener.onFailure(data.failed);
      else this.#answered(data);
    };
    this.#worker.onerror = (event) => listener.onFailure(event.message || "the worker cannot be started");
  }

  /** Read a cluster from [name, Uint8Array] pairs and a configuration, which may be "". */
  load(files, config) {
    return this.#call("load", [files, config]);
  }

  /** Ask "placement", "why" or "capacity" about the pod with that number in the list. */
  ask(question, number) {
    return this.#call("ask", [question, number]);
  }

  #call(method, parameters) {
    const id = this.#asked++;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#worker.postMessage({ id, method, parameters });
    });
  }

  #answered({ id, answer, failure }) {
    const { resolve, reject } = this.#waiting.get(id);
    this.#waiting.delete(id);
    if (failure === undefined) resolve(answer);
    else reject(new Error(failure));
  }
}
