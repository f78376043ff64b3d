// Lets the search run where the site is opened from a disk: browsers start no worker from file://, so its script runs in
// a frame that isn't shown, and messages go to and fro as with a worker. From a server nothing of this is used.
// The theme's offline plugin would take such a script from another host, unless it finds one by this file's name.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.inside = new Promise((ready) => {
        const frame = document.createElement("iframe");
        frame.hidden = true;
        frame.title = "search";
        frame.addEventListener("load", () => {
          const inner = frame.contentWindow;
          const script = inner.document.createElement("script");
          inner.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
          script.src = url;
          script.addEventListener("load", () => ready(inner));
          inner.document.body.append(script);
        });
        frame.srcdoc = "<!doctype html><title>search</title><body>";
        document.body.append(frame);
      });
    }

    postMessage(data) {
      this.inside.then((inner) => inner.dispatchEvent(new inner.MessageEvent("message", { data })));
    }
  };
}
