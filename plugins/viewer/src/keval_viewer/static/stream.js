// Server-sent events that go on after the server was away: a browser gives up when a server refuses it once.
const AGAIN = 2000;

export const stream = (url, listeners, tell = () => {}) => {
  const open = () => {
    const source = new EventSource(url);
    for (const [name, listener] of Object.entries(listeners)) {
      source.addEventListener(name, (event) => listener(JSON.parse(event.data), source));
    }
    source.addEventListener("open", () => tell(true));
    source.addEventListener("error", () => {
      tell(false);
      if (source.readyState === EventSource.CLOSED) setTimeout(open, AGAIN);
    });
  };
  open();
};
