// The listeners on the home page with their connections, and whether the server is draining.

import { el, setText } from '../dom.js';
import { countText } from '../numbers.js';
import { Rates } from '../series.js';
import { getJson } from '../server.js';
import type { Stats } from '../stats-json.js';
import { DataTable } from '../table.js';

interface ListenerRow {
  readonly name: string;
  readonly addresses: readonly string[];
  readonly statPrefix: string;
  active?: number;
  rate?: number | undefined;
}

export class Listeners {
  readonly #table = new DataTable<ListenerRow>({
    what: 'listeners',
    key: ({ name }) => name,
    columns: [
      { title: 'Listener', value: ({ name }) => name },
      { title: 'Addresses', value: ({ addresses }) => addresses.join(', ') },
      { title: 'Connections', isNumber: true, value: ({ active }) => active },
      { title: 'New per second', isNumber: true, value: ({ rate }) => rate },
    ],
  });
  readonly #drain = el('p', { id: 'drain-state', role: 'status' });
  readonly #rates = new Rates();
  #rows: readonly ListenerRow[] = [];

  constructor(section: HTMLElement) {
    section.append(this.#drain, this.#table.element);
    section.hidden = false;
  }

  /** Requests the list of listeners. */
  async load(): Promise<void> {
    this.#rows = await getJson<readonly ListenerRow[]>('web/listeners.json');
  }

  /** Shows the listeners with their counts in `values`. */
  update({ values }: Stats): void {
    this.#rates.begin(performance.now());
    for (const row of this.#rows) {
      const active = values.get(`${row.statPrefix}downstream_cx_active`);
      const total = values.get(`${row.statPrefix}downstream_cx_total`);
      if (active !== undefined) row.active = Number(active);
      row.rate = total === undefined ? undefined : this.#rates.read(row.statPrefix, Number(total));
    }
    this.#table.set(this.#rows);
    setText(this.#drain, drainText(values));
  }
}

function drainText(values: Stats['values']): string {
  const count = (name: string) => Number(values.get(`listener_manager.${name}`) ?? 0);
  const parts = [`${countText(count('total_listeners_active'))} active`];
  for (const [name, text] of [
    ['total_listeners_warming', 'warming'],
    ['total_listeners_draining', 'draining'],
    ['total_filter_chains_draining', 'filter chains draining'],
    ['listener_stopped', 'stopped since the start'],
  ] as const) {
    if (count(name) > 0) parts.push(`${countText(count(name))} ${text}`);
  }
  const health = values.get('server.live') === 0 ? 'health checks are failed on purpose' : 'health checks pass';
  return `${parts.join(', ')}; ${health}.`;
}
