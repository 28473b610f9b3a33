// Search runs in a worker, which browsers do not start for pages that are opened as files. There, this runs the
// worker's script in a hidden frame of the page instead.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.appendChild(frame);
      this.inside = frame.contentWindow;
      this.inside.postMessage = (data) => this.deliver(this, data);
      this.inside.importScripts = async (...urls) => {
        for (const one of urls) await this.load(one);
      };
      this.ready = this.load(url);
    }

    load(url) {
      return new Promise((resolve, reject) => {
        const script = this.inside.document.createElement("script");
        script.src = url;
        script.onload = resolve;
        script.onerror = reject;
        this.inside.document.body.appendChild(script);
      });
    }

    // A property such as `onmessage` is called as a listener is; dispatchEvent() alone would leave it out here.
    deliver(target, data) {
      const event = new MessageEvent("message", { data });
      target.dispatchEvent(event);
      if (target === this && typeof this.onmessage === "function") this.onmessage(event);
    }

    postMessage(data) {
      this.ready.then(() => this.deliver(this.inside, data));
    }

    terminate() {
      this.inside.frameElement.remove();
    }
  };
}
