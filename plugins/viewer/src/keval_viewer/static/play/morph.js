// Makes one tree of elements like another one, and leaves alone what the reader did to it: what is open, has the focus,
// is selected or was typed.
const keyOf = (node) => (node.nodeType === Node.ELEMENT_NODE ? node.id || node.dataset.key || null : null);

const alike = (from, to) => from.nodeType === to.nodeType && from.nodeName === to.nodeName && keyOf(from) === keyOf(to);

const sameAttributes = (from, to) => {
  // Whether something is open is the reader's.
  const own = from.nodeName === "DETAILS" || from.nodeName === "DIALOG" ? "open" : null;
  for (const { name } of [...from.attributes]) if (name !== own && !to.hasAttribute(name)) from.removeAttribute(name);
  for (const { name, value } of [...to.attributes]) {
    if (name !== own && from.getAttribute(name) !== value) from.setAttribute(name, value);
  }
};

const children = (from, to) => {
  const keyed = new Map([...from.children].filter(keyOf).map((child) => [keyOf(child), child]));
  let at = from.firstChild;
  for (const wanted of [...to.childNodes]) {
    const key = keyOf(wanted);
    const known = key === null ? at : keyed.get(key);
    if (known && alike(known, wanted)) {
      if (known === at) at = at.nextSibling;
      else from.insertBefore(known, at);
      morph(known, wanted);
    } else {
      from.insertBefore(document.importNode(wanted, true), at);
    }
  }
  while (at) {
    const next = at.nextSibling;
    at.remove();
    at = next;
  }
};

// `data-own` and dialogs are filled by scripts; `data-load` was, when the reader opened it.
const isOwn = (from) =>
  from.nodeName === "DIALOG" || from.dataset.own !== undefined || (from.dataset.load !== undefined && from.open);

export const morph = (from, to) => {
  if (from.isEqualNode(to)) return;
  if (from.nodeType !== Node.ELEMENT_NODE) {
    if (from.data !== to.data) from.data = to.data;
    return;
  }
  sameAttributes(from, to);
  if (!isOwn(from)) children(from, to);
};
