/* The search runs in a worker, which browsers refuse to pages opened from a disk. There, a hidden frame does its work. */
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      const inner = frame.contentWindow;
      const load = (source) =>
        new Promise((done, failed) => {
          const script = inner.document.createElement("script");
          Object.assign(script, { src: source, onload: done, onerror: failed });
          inner.document.head.append(script);
        });
      const deliver = (target, data) => target.dispatchEvent(new MessageEvent("message", { data }));
      inner.importScripts = (...sources) => Promise.all(sources.map(load));
      inner.postMessage = (data) => deliver(this, data);
      const loaded = load(url);
      this.postMessage = (data) => loaded.then(() => deliver(inner, data));
      this.terminate = () => frame.remove();
    }
  };
}
