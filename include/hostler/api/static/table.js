// One table that keeps its place: rows are known by a key and changed only where they differ, so that a refresh moves
// neither focus nor selection nor scroll.

import { count, make } from "./format.js";

export class Table {
  /**
   * @param element the table. pager: its nav. columns: {title, sort?, number?, words?, header?, cells(row), sign?(row)}.
   * @param key names a row. onWish: is called when the person sorts or turns the page.
   */
  constructor({ element, pager, columns, key, limit, sort, descending, onWish, empty }) {
    Object.assign(this, { element, columns, key, limit, sort, descending, onWish, empty, offset: 0, total: 0, rows: new Map() });
    this.body = make("tbody");
    this.headers = columns.map((column) => this.#header(column));
    element.append(make("thead", {}, make("tr", {}, ...this.headers)), this.body);
    this.previous = this.#turn("Previous", -1);
    this.next = this.#turn("Next", 1);
    this.place = make("span", { class: "quiet" });
    pager.append(this.place, this.previous, this.next);
    this.#showSort();
  }

  get wish() {
    return { sort: this.sort, descending: this.descending, offset: this.offset, limit: this.limit };
  }

  show({ rows, offset, total, all }) {
    Object.assign(this, { offset, total });
    const focused = document.activeElement;
    const wanted = new Set(rows.map((row) => row[this.key]));
    for (const [name, kept] of this.rows) {
      if (!wanted.has(name)) {
        kept.line.remove();
        this.rows.delete(name);
      }
    }
    this.body.querySelector(".empty")?.remove();
    rows.forEach((row, index) => this.#place(row, index));
    if (!rows.length) {
      const text = all ? "Nothing matches the filter." : this.empty;
      this.body.append(make("tr", { class: "empty" }, make("td", { colspan: this.columns.length }, text)));
    }
    // A row that moves loses the focus that is in it.
    if (focused !== document.activeElement && focused?.isConnected) focused.focus({ preventScroll: true });
    this.#showPlace();
  }

  #place(row, index) {
    const name = row[this.key];
    let kept = this.rows.get(name);
    if (!kept) {
      const cells = this.columns.map((column) =>
        make(column.header ? "th" : "td", { scope: column.header ? "row" : null, class: cellClass(column) }));
      kept = { line: make("tr", {}, ...cells), cells, signs: [] };
      this.rows.set(name, kept);
    }
    this.columns.forEach((column, at) => {
      const sign = JSON.stringify(column.sign ? column.sign(row) : column.cells(row));
      if (kept.signs[at] !== sign) {
        kept.cells[at].replaceChildren(...column.cells(row));
        kept.signs[at] = sign;
      }
    });
    if (this.body.children[index] !== kept.line) this.body.insertBefore(kept.line, this.body.children[index] ?? null);
  }

  #header(column) {
    const inside = column.sort ? make("button", { type: "button" }, column.title) : column.title;
    const cell = make("th", { scope: "col", class: column.number ? "number" : null }, inside);
    if (column.sort) inside.addEventListener("click", () => this.#sortBy(column.sort));
    return cell;
  }

  #sortBy(field) {
    this.descending = field === this.sort ? !this.descending : false;
    this.sort = field;
    this.offset = 0;
    this.#showSort();
    this.onWish();
  }

  #showSort() {
    this.columns.forEach((column, index) => {
      if (!column.sort) return;
      const order = this.descending ? "descending" : "ascending";
      this.headers[index].setAttribute("aria-sort", column.sort === this.sort ? order : "none");
    });
  }

  #turn(text, step) {
    const button = make("button", { type: "button" }, text);
    button.addEventListener("click", () => {
      const offset = this.offset + step * this.limit;
      // Not `disabled`: a button that is switched off under the keyboard loses the focus.
      if (button.getAttribute("aria-disabled") === "true") return;
      this.offset = Math.max(0, offset);
      this.onWish();
    });
    return button;
  }

  #showPlace() {
    const last = Math.min(this.offset + this.limit, this.total);
    this.place.textContent = this.total ? `${count(this.offset + 1)}–${count(last)} of ${count(this.total)}` : "0";
    this.previous.setAttribute("aria-disabled", String(this.offset === 0));
    this.next.setAttribute("aria-disabled", String(last >= this.total));
  }
}

function cellClass(column) {
  return column.number ? "number" : column.words ? "words" : null;
}
