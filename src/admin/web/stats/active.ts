// The active page's script: requests stats periodically and shows those that change most often.

import { byId } from '../dom.js';
import { samples } from '../histogram.js';
import { rateText } from '../numbers.js';
import { poll } from '../poll.js';
import { encodeSpaces } from '../query.js';
import { Rates } from '../series.js';
import { getStats, type Stats } from '../stats-json.js';
import { DataTable } from '../table.js';

interface ActiveStat {
  readonly name: string;
  /** For a histogram: its number of samples. */
  value: number | string;
  /** Number of changes between two answers. */
  changes: number;
  /** Growth per second between the last two answers; undefined for texts. */
  rate: number | undefined;
}

const form = byId('stats', HTMLFormElement);
const section = byId('active-section', HTMLElement);
const known = new Map<string, ActiveStat>();
let rates = new Rates();
let selection = '';

const table = new DataTable<ActiveStat>({
  what: 'active stats',
  // The form above also has a filter, which the server applies.
  filterLabel: 'Find in the list',
  key: ({ name }) => name,
  columns: [
    { title: 'Name', value: ({ name }) => name },
    { title: 'Value', isNumber: true, value: ({ value }) => value },
    {
      title: 'Growth',
      isNumber: true,
      value: ({ rate }) => rate,
      show: ({ rate }, cell) => {
        cell.textContent = rateText(rate);
      },
    },
    { title: 'Changes', isNumber: true, value: ({ changes }) => changes },
  ],
  pageSize: 1000,
});

section.append(table.element);
section.hidden = false;
const updateNow = poll(update, () => number('interval', 5));
for (const control of form.elements) {
  control.addEventListener('change', () => {
    if (field('format') === 'active-html') updateNow();
    else form.requestSubmit();
  });
}
form.addEventListener('submit', (event) => {
  if (field('format') !== 'active-html') return;
  event.preventDefault();
  updateNow();
});
encodeSpaces();

async function update(): Promise<void> {
  const parameters: Record<string, string> = { usedonly: '' };
  for (const [name, value] of new FormData(form)) {
    if (!['format', 'count', 'interval'].includes(name) && value !== '') parameters[name] = String(value);
  }
  const stats = await getStats(parameters);
  const requested = JSON.stringify(parameters);
  if (requested !== selection) reset();
  selection = requested;
  record(stats);
  table.set(mostActive(number('count', 50)));
}

function reset(): void {
  known.clear();
  rates = new Rates();
}

function record({ values, histograms }: Stats): void {
  rates.begin(performance.now());
  for (const [name, value] of values) recordOne(name, value);
  for (const { name, totals } of histograms) recordOne(name, samples(totals));
}

function recordOne(name: string, value: number | string): void {
  const rate = typeof value === 'number' ? rates.growth(name, value) : undefined;
  const stat = known.get(name);
  if (stat === undefined) {
    known.set(name, { name, value, changes: 0, rate });
    return;
  }
  if (stat.value !== value) stat.changes++;
  stat.value = value;
  stat.rate = rate;
}

/** Returns the first `count` stats by number of changes, then by name. */
function mostActive(count: number): ActiveStat[] {
  return [...known.values()].sort((a, b) => b.changes - a.changes || (a.name < b.name ? -1 : 1)).slice(0, count);
}

function field(name: string): string {
  return String(new FormData(form).get(name) ?? '');
}

/** Returns the value of a number field; `preset` if it is empty or invalid. */
function number(name: string, preset: number): number {
  const input = form.elements.namedItem(name);
  if (!(input instanceof HTMLInputElement) || !input.validity.valid || input.value === '') return preset;
  return input.valueAsNumber;
}
