// A table that users sort by its headings and filter. Rows keep their elements when their content changes, so that the
// selection, the focus and expanded rows survive an update.

import { el, setText } from './dom.js';
import { countText, figureText } from './numbers.js';

export interface Column<Row> {
  readonly title: string;
  /** Sort key, also shown unless `show` is set. */
  value(row: Row): string | number | undefined;
  readonly isNumber?: boolean;
  /** Fills the cell, which still has its previous content. */
  show?(row: Row, cell: HTMLTableCellElement): void;
}

export interface TableOptions<Row> {
  /** The rows in the plural: 'clusters'. */
  readonly what: string;
  /** The first column is the row's heading. */
  readonly columns: readonly Column<Row>[];
  /** Label of the filter; default: 'Filter' and `what`. */
  readonly filterLabel?: string;
  /** Identifies a row; the filter matches it. */
  key(row: Row): string;
  /** The column of the initial order, descending for numbers; default: unsorted. */
  readonly sortBy?: number;
  /** Maximum number of rows until the user requests more. */
  readonly pageSize?: number;
  /** Content of an expanded row; called again at each update while it is expanded. */
  details?(row: Row): Node;
  /** Called after an update with the visible rows. */
  onShown?(rows: readonly Row[]): void;
}

const PAGE_SIZE = 200;

interface ShownRow {
  readonly row: HTMLTableRowElement;
  readonly toggle: HTMLButtonElement | undefined;
  details: HTMLTableRowElement | undefined;
}

export class DataTable<Row> {
  /** The filter, the table and the line below it. */
  readonly element: HTMLElement;
  readonly #options: TableOptions<Row>;
  readonly #headings: HTMLTableCellElement[] = [];
  readonly #body = el('tbody');
  readonly #filter: HTMLInputElement;
  readonly #count = el('p', { class: 'count', role: 'status' });
  readonly #more: HTMLButtonElement;
  readonly #shown = new Map<string, ShownRow>();
  #rows: readonly Row[] = [];
  #sortBy: number;
  #isDescending: boolean;
  #limit: number;

  constructor(options: TableOptions<Row>) {
    const { what, columns, filterLabel = `Filter ${what}`, sortBy = -1, pageSize = PAGE_SIZE } = options;
    this.#options = options;
    this.#sortBy = sortBy;
    this.#isDescending = columns[sortBy]?.isNumber === true;
    this.#limit = pageSize;
    const id = `filter-${what.replaceAll(' ', '-')}`;
    this.#filter = el('input', { type: 'search', id, autocomplete: 'off', spellcheck: 'false' });
    this.#filter.addEventListener('input', () => this.#render());
    this.#more = el('button', { type: 'button', class: 'button' }, 'Show more');
    this.#more.addEventListener('click', () => {
      this.#limit += pageSize;
      this.#render();
    });
    this.element = el(
      'div',
      { class: 'data' },
      el('p', { class: 'filter' }, el('label', { for: id }, filterLabel), this.#filter),
      el(
        'div',
        { class: 'scroll' },
        el('table', { class: 'data-table' }, el('thead', {}, el('tr', {}, ...this.#makeHeadings())), this.#body),
      ),
      this.#count,
      this.#more,
    );
  }

  set(rows: readonly Row[]): void {
    this.#rows = rows;
    this.#render();
  }

  #makeHeadings(): HTMLTableCellElement[] {
    this.#options.columns.forEach((column, index) => {
      const button = el('button', { type: 'button' }, column.title);
      button.addEventListener('click', () => {
        this.#isDescending = this.#sortBy === index ? !this.#isDescending : column.isNumber === true;
        this.#sortBy = index;
        this.#render();
      });
      this.#headings.push(el('th', { scope: 'col', class: column.isNumber && 'number' }, button));
    });
    return this.#headings;
  }

  #render(): void {
    const matching = this.#sorted(this.#filtered());
    const seen = matching.slice(0, this.#limit);
    this.#headings.forEach((heading, index) => {
      if (index === this.#sortBy) heading.setAttribute('aria-sort', this.#isDescending ? 'descending' : 'ascending');
      else heading.removeAttribute('aria-sort');
    });
    this.#place(seen);
    setText(this.#count, countsText(seen.length, matching.length, this.#rows.length));
    this.#more.hidden = seen.length === matching.length;
    this.#options.onShown?.(seen);
  }

  /** Returns the rows whose names contain all words of the filter. */
  #filtered(): readonly Row[] {
    const words = this.#filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    if (words.length === 0) return this.#rows;
    return this.#rows.filter((row) => {
      const name = this.#options.key(row).toLowerCase();
      return words.every((word) => name.includes(word));
    });
  }

  #sorted(rows: readonly Row[]): readonly Row[] {
    const column = this.#options.columns[this.#sortBy];
    if (column === undefined) return rows;
    const direction = this.#isDescending ? -1 : 1;
    return rows
      .map((row) => ({ row, value: column.value(row) }))
      .sort((a, b) => direction * compare(a.value, b.value))
      .map(({ row }) => row);
  }

  #place(rows: readonly Row[]): void {
    const focused = document.activeElement;
    const stale = new Set(this.#shown.keys());
    let next = this.#body.firstElementChild;
    const put = (element: Element) => {
      if (element === next) next = next.nextElementSibling;
      else this.#body.insertBefore(element, next);
    };
    for (const row of rows) {
      const key = this.#options.key(row);
      stale.delete(key);
      const shown = this.#update(row, key);
      put(shown.row);
      if (shown.details !== undefined) put(shown.details);
    }
    for (const key of stale) {
      this.#shown.get(key)!.row.remove();
      this.#shown.get(key)!.details?.remove();
      this.#shown.delete(key);
    }
    // Moving a row drops its focus.
    if (focused instanceof HTMLElement && focused !== document.activeElement && this.#body.contains(focused))
      focused.focus();
  }

  #update(row: Row, key: string): ShownRow {
    let shown = this.#shown.get(key);
    if (shown === undefined) this.#shown.set(key, (shown = this.#make(key)));
    const { columns, details } = this.#options;
    columns.forEach((column, index) => {
      const cell = shown.row.cells[index]!;
      if (index === 0 && shown.toggle !== undefined) setText(shown.toggle, key);
      else if (column.show !== undefined) column.show(row, cell);
      else setText(cell, valueText(column.value(row)));
    });
    if (shown.details !== undefined) shown.details.cells[0]!.replaceChildren(details!(row));
    return shown;
  }

  #make(key: string): ShownRow {
    const { columns, details } = this.#options;
    const cells = columns.map(({ isNumber }, index) =>
      index === 0 ? el('th', { scope: 'row' }) : el('td', { class: isNumber && 'number' }),
    );
    const toggle = details && el('button', { type: 'button', class: 'toggle', 'aria-expanded': 'false' });
    if (toggle !== undefined) {
      cells[0]!.append(toggle);
      toggle.addEventListener('click', () => this.#toggle(key));
    }
    return { row: el('tr', {}, ...cells), toggle, details: undefined };
  }

  #toggle(key: string): void {
    const shown = this.#shown.get(key);
    if (shown === undefined) return;
    const isOpen = shown.details !== undefined;
    shown.details?.remove();
    shown.details = isOpen
      ? undefined
      : el('tr', {}, el('td', { class: 'unfolded', colspan: this.#options.columns.length }));
    shown.toggle!.setAttribute('aria-expanded', String(!isOpen));
    this.#render();
  }
}

function countsText(seen: number, matching: number, all: number): string {
  const match = matching === all ? `${countText(all)} in all` : `${countText(matching)} of ${countText(all)} match`;
  return seen === matching ? match : `${match}, the first ${countText(seen)} are shown`;
}

function valueText(value: string | number | undefined): string {
  if (value === undefined) return '–';
  return typeof value === 'number' ? figureText(value) : value;
}

/** Numbers before texts, unknown values last. */
function compare(a: string | number | undefined, b: string | number | undefined): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  if (typeof a === 'string' && typeof b === 'string') return a < b ? -1 : a > b ? 1 : 0;
  return rank(a) - rank(b);
}

function rank(value: string | number | undefined): number {
  return value === undefined ? 2 : typeof value === 'string' ? 1 : 0;
}
