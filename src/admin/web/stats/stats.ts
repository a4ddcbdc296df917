// The stats page's script: turns the page's text into a table, draws histograms, and applies the form's changes immediately.

import { byId, el, setText } from '../dom.js';
import { drawHistogram, quantile, samples } from '../histogram.js';
import { countText, figureText } from '../numbers.js';
import { encodeSpaces, queryText } from '../query.js';
import { getText, showStatus } from '../server.js';
import { getStats, namesPattern } from '../stats-json.js';
import { DataTable } from '../table.js';
import { parseLines, type StatLine } from './stats-lines.js';

/**
 * Above this number of characters (some millions of stats) the text is not turned into a table, which would take too much
 * memory.
 */
const MAX_CHARACTERS = 256 * 1024 * 1024;
/** Histograms per request. */
const BATCH = 40;

const text = byId('stats-text', HTMLPreElement);
const section = byId('stats-section', HTMLElement);
const form = byId('stats', HTMLFormElement);
/** Elements for pictures by name. */
const pictures = new Map<string, HTMLElement>();
let loads = 0;

const table = new DataTable<StatLine>({
  what: 'stats',
  // The form above also has a filter, which the server applies.
  filterLabel: 'Find in the list',
  key: ({ name }) => name,
  columns: [
    { title: 'Name', value: ({ name }) => name },
    { title: 'Value', isNumber: true, value: ({ value, text }) => value ?? text, show: showValue },
  ],
  onShown: (lines) => void draw(lines),
});

section.append(table.element);
for (const control of form.elements) {
  control.addEventListener('change', () => {
    // Other formats are other pages.
    if (parameters().get('format') === 'html') void reload();
    else form.requestSubmit();
  });
}
form.addEventListener('submit', (event) => {
  if (parameters().get('format') !== 'html') return;
  event.preventDefault();
  void reload();
});
encodeSpaces();
show(text.textContent);

function parameters(): URLSearchParams {
  const query = new URLSearchParams();
  for (const [name, value] of new FormData(form)) if (value !== '') query.set(name, String(value));
  return query;
}

/** Requests the stats that the form selects. The address becomes that of the page that shows them. */
async function reload(): Promise<void> {
  const load = ++loads;
  const query = parameters();
  showStatus('Loading …');
  try {
    const lines = await getText(`stats?${inFormat(query, 'text')}`);
    if (load !== loads) return;
    history.replaceState(null, '', `?${inFormat(query, 'html')}`);
    pictures.clear();
    showStatus('');
    show(lines);
  } catch (error) {
    if (load === loads) showStatus(error instanceof Error ? error.message : String(error));
  }
}

function inFormat(query: URLSearchParams, format: string): string {
  return queryText([...[...query].filter(([name]) => name !== 'format'), ['format', format]]);
}

function show(lines: string): void {
  const isTable = lines.length <= MAX_CHARACTERS;
  section.hidden = !isTable;
  document.documentElement.classList.toggle('scripted', isTable);
  // The table's content is not kept twice.
  setText(text, isTable ? '' : lines);
  if (isTable) table.set(parseLines(lines));
  if (!isTable) showStatus('Too many stats for a table: narrow them with the filter.');
}

function showValue(line: StatLine, cell: HTMLTableCellElement): void {
  cell.classList.toggle('number', line.value !== undefined && !line.isHistogram);
  if (!line.isHistogram) {
    setText(cell, line.value === undefined ? line.text : countText(line.value));
    return;
  }
  let picture = pictures.get(line.name);
  if (picture === undefined)
    pictures.set(line.name, (picture = el('figure', {}, el('p', { class: 'lines' }, line.text))));
  if (picture.parentNode !== cell) cell.replaceChildren(picture);
}

/** Draws the shown histograms that are not drawn yet. */
async function draw(lines: readonly StatLine[]): Promise<void> {
  const names = lines
    .filter(({ name, isHistogram }) => isHistogram && pictures.get(name)?.dataset['isDrawn'] === undefined)
    .map(({ name }) => name);
  for (const name of names) pictures.get(name)!.dataset['isDrawn'] = 'no';
  try {
    for (let i = 0; i < names.length; i += BATCH) await drawBatch(names.slice(i, i + BATCH));
  } catch (error) {
    showStatus(error instanceof Error ? error.message : String(error));
  }
}

async function drawBatch(names: readonly string[]): Promise<void> {
  const { histograms } = await getStats({ type: 'Histograms', hidden: 'include', filter: namesPattern(names) });
  for (const { name, totals } of histograms) {
    const drawing = drawHistogram(totals);
    const picture = pictures.get(name);
    if (drawing === undefined || picture === undefined) continue;
    const of = (share: number) => figureText(quantile(totals, share)!);
    const caption = `${countText(samples(totals))} samples · median ${of(0.5)} · 99 % ${of(0.99)} · most ${of(1)}`;
    const line = picture.querySelector('.lines')!;
    picture.replaceChildren(
      drawing,
      el('figcaption', {}, caption),
      el('details', {}, el('summary', {}, 'all values'), line),
    );
    picture.dataset['isDrawn'] = 'yes';
  }
}
