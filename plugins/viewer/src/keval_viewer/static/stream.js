// Server-sent events that go on after the server was away, for as long as the page can be seen: a browser gives up when
// a server refuses it once, and keeps no more than six connections for all of its tabs.
const AGAIN = 2000;

export const stream = (url, listeners, tell = () => {}) => {
  let source = null;
  let waiting = 0;

  const open = () => {
    source = new EventSource(url);
    for (const [name, listener] of Object.entries(listeners)) {
      source.addEventListener(name, (event) => listener(JSON.parse(event.data), source));
    }
    source.addEventListener("open", () => tell(true));
    source.addEventListener("error", () => {
      tell(false);
      if (source.readyState === EventSource.CLOSED) waiting = setTimeout(open, AGAIN);
    });
  };

  document.addEventListener("visibilitychange", () => {
    clearTimeout(waiting);
    source.close();
    if (!document.hidden) open();
  });
  open();
};
