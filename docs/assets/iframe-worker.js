// A page that is opened from a folder may start no worker. The search then runs in a
// hidden frame of the same page, behind the same few methods.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.inner = frame.contentWindow;
      this.inner.postMessage = (data) => {
        const message = new MessageEvent("message", { data });
        this.dispatchEvent(message);
        this.onmessage?.(message);
      };
      this.ready = new Promise((done) => {
        const script = this.inner.document.createElement("script");
        script.src = address;
        script.onload = done;
        this.inner.document.body.append(script);
      });
    }

    postMessage(data) {
      this.ready.then(() => {
        const message = new this.inner.MessageEvent("message", { data });
        this.inner.dispatchEvent(message);
      });
    }

    terminate() {
      this.inner.frameElement.remove();
    }
  };
}
