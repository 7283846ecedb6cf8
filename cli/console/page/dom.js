/** Elements, made without HTML: whatever text is put in stays text. */

/**
 * An element of the page by its id.
 * @template {HTMLElement} Kind
 * @param {string} id
 * @param {new () => Kind} kind
 * @returns {Kind}
 */
export function byId(id, kind) {
  const found = document.getElementById(id);
  if (!(found instanceof kind)) throw new Error(`the page has no #${id}`);
  return found;
}

/**
 * Makes an element with attributes and children; texts become text, null is left out.
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Record<string, string | boolean>} attributes
 * @param {(Node | string | null)[]} children
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'string') made.setAttribute(name, value);
    else made.toggleAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

/**
 * A button that does something. `focus` is its name across renderings, so that a refresh takes the focus from nobody.
 * @param {string} text
 * @param {Record<string, string | boolean> & { focus: string }} attributes
 * @param {() => void} act
 */
export function button(text, { focus, ...attributes }, act) {
  const made = el('button', { type: 'button', 'data-focus': focus, ...attributes }, text);
  made.addEventListener('click', act);
  return made;
}

/** @typedef {{ data: string, node: HTMLElement }} Rendered */
/** @type {WeakMap<Element, Map<string, Rendered>>} */
const renderedRows = new WeakMap();

/**
 * Renders a list, one element for each item. An item that is as it was keeps its element, and with it what is selected
 * there; the focus stays where it was. So a refresh disturbs nobody who reads, copies or goes by keyboard.
 * @template Item
 * @param {Element} part
 * @param {readonly Item[]} items
 * @param {(item: Item) => string} keyOf names the item across renderings
 * @param {(item: Item) => HTMLElement} render uses nothing but the item
 */
export function renderRows(part, items, keyOf, render) {
  const before = renderedRows.get(part) ?? new Map();
  /** @type {Map<string, Rendered>} */
  const now = new Map();
  for (const item of items) {
    const data = JSON.stringify(item);
    const last = before.get(keyOf(item));
    now.set(keyOf(item), last?.data === data ? last : { data, node: render(item) });
  }
  renderedRows.set(part, now);
  keepFocus(part, () => {
    const nodes = new Set([...now.values()].map(({ node }) => node));
    for (const { node } of before.values()) if (!nodes.has(node)) node.remove();
    let at = part.firstElementChild;
    for (const node of nodes) {
      if (node === at) at = at.nextElementSibling;
      else part.insertBefore(node, at);
    }
  });
}

/**
 * @param {Element} part
 * @param {() => void} change
 */
function keepFocus(part, change) {
  const active = document.activeElement;
  const inside = active instanceof HTMLElement && part.contains(active);
  const name = inside ? active.dataset['focus'] : undefined;
  change();
  if (name === undefined || document.activeElement === active) return;
  for (const again of part.querySelectorAll('[data-focus]')) {
    if (again instanceof HTMLElement && again.dataset['focus'] === name) again.focus({ preventScroll: true });
  }
}

/**
 * Says something in a place that is hidden where there is nothing to say.
 * @param {HTMLElement} place
 * @param {string} text
 */
export function say(place, text) {
  if (place.textContent !== text) place.textContent = text;
  place.hidden = text === '';
}

/** @param {unknown} error */
export function messageOf(error) {
  return error instanceof Error ? error.message : String(error);
}
