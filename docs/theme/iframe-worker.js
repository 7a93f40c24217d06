// Search in a page that is opened as a file: browsers start no worker there, so a hidden frame does its work.
if (location.protocol === "file:") {
  window.IFrameWorker = class extends EventTarget {
    constructor(source) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.frame = frame;
      this.inside = frame.contentWindow;
      const load = (address) => new Promise((done, failed) => {
        const script = frame.contentDocument.createElement("script");
        Object.assign(script, { src: address, onload: done, onerror: () => failed(new Error(address)) });
        frame.contentDocument.body.append(script);
      });
      const tell = (data) => {
        const message = new MessageEvent("message", { data });
        this.dispatchEvent(message);
        if (this.onmessage) this.onmessage(message);
      };
      Object.assign(this.inside, {
        postMessage: tell,
        importScripts: (...addresses) => addresses.reduce((before, one) => before.then(() => load(one)), Promise.resolve()),
      });
      this.ready = load(new URL(source, location).href);
    }
    postMessage(data) {
      this.ready.then(() => this.inside.dispatchEvent(new this.inside.MessageEvent("message", { data })));
    }
    terminate() { this.frame.remove(); }
  };
  window.Worker = window.IFrameWorker;
}
