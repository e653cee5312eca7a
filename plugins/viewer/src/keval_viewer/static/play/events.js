// The events of the play. A browser has few connections to a server, so a tab that is hidden gives its own back, and
// goes on where it was when it is seen again.
export const follow = (start, { text, changed, lost }) => {
  let following = start;
  let source = null;

  const heard = (event) => {
    following = Math.max(following, Number(event.lastEventId) + 1);
    return JSON.parse(event.data);
  };

  const open = () => {
    source = new EventSource(`/play/events?from=${following}`);
    source.addEventListener("open", () => lost(false));
    source.addEventListener("text", (event) => text({ ...heard(event), number: following - 1 }));
    source.addEventListener("changed", (event) => {
      heard(event);
      changed();
    });
    source.addEventListener("error", () => lost(true)); // the browser tries again by itself
  };

  document.addEventListener("visibilitychange", () => {
    source.close();
    if (document.hidden) return;
    open();
    changed();
  });
  addEventListener("pagehide", () => source.close());
  addEventListener("pageshow", (event) => {
    if (event.persisted) open();
  });
  open();
};
