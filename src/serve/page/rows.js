/*
 * A list of any length in a few elements: only the lines in sight exist. Changes are gathered and
 * drawn once a frame, so ten thousand events that arrive together cost as much as one screenful.
 */
const BEYOND = 6; /* lines kept above and below what is in sight */

export class Rows {
  /**
   * @param {HTMLElement} view scrolls; its lines are as high as `--row` of its style
   * @param {(node: HTMLElement, item: any, index: number) => void} draw fills a line anew
   */
  constructor(view, draw) {
    this.view = view;
    this.draw = draw;
    this.items = [];
    this.isQueued = false;
    this.height = 0;
    /** @type {Map<number, HTMLElement>} */
    this.shown = new Map();
    this.sheet = document.createElement("div");
    this.sheet.className = "sheet";
    this.sheet.setAttribute("role", "presentation");
    view.replaceChildren(this.sheet);
    view.addEventListener("scroll", () => this.refresh(), { passive: true });
    new ResizeObserver(() => this.refresh()).observe(view);
  }

  /** Other items: every line is drawn anew. @param {any[]} items */
  replace(items) {
    this.items = items;
    for (const node of this.shown.values()) node.remove();
    this.shown.clear();
    this.refresh();
  }

  /** Is the end in sight? Then what is added stays so. */
  get isAtEnd() {
    return this.view.scrollTop + this.view.clientHeight >= this.view.scrollHeight - 4;
  }

  /** Draws what changed, with the next frame. @param {boolean} [toEnd] */
  refresh(toEnd = false) {
    this.wantsEnd ||= toEnd;
    if (this.isQueued) return;
    this.isQueued = true;
    requestAnimationFrame(() => {
      this.isQueued = false;
      this.paint();
    });
  }

  /** @param {number} index */
  reveal(index) {
    const top = index * this.height;
    if (top < this.view.scrollTop) this.view.scrollTop = top;
    else if (top + this.height > this.view.scrollTop + this.view.clientHeight)
      this.view.scrollTop = top + this.height - this.view.clientHeight;
    this.refresh();
  }

  paint() {
    if (this.view.clientHeight === 0) return;
    const height = parseFloat(getComputedStyle(this.view).getPropertyValue("--row")) || 28;
    if (height !== this.height) {
      /* A narrow window has higher lines: none stands where it should. */
      for (const node of this.shown.values()) node.remove();
      this.shown.clear();
      this.height = height;
    }
    this.sheet.style.height = `${this.items.length * this.height}px`;
    if (this.wantsEnd) this.view.scrollTop = this.view.scrollHeight;
    this.wantsEnd = false;
    const first = Math.max(0, Math.floor(this.view.scrollTop / this.height) - BEYOND);
    const last = Math.min(this.items.length,
      Math.ceil((this.view.scrollTop + this.view.clientHeight) / this.height) + BEYOND);
    const spare = [];
    for (const [index, node] of this.shown)
      if (index < first || index >= last) {
        this.shown.delete(index);
        spare.push(node);
      }
    for (let index = first; index < last; index++)
      if (!this.shown.has(index)) this.place(spare.pop() ?? this.sheet.appendChild(document.createElement("div")), index);
    for (const node of spare) node.remove();
  }

  /** @param {HTMLElement} node @param {number} index */
  place(node, index) {
    node.style.transform = `translateY(${index * this.height}px)`;
    this.shown.set(index, node);
    this.draw(node, this.items[index], index);
  }
}
