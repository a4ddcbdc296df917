// /stats for people: a form with its parameters, then the stats as text, which a script turns into a table.

import { type AdminHandler, type AdminParameter, type AdminResponse, type Pieces, Refusal } from '../admin-handler.js';
import type { QueryParameters } from '../http/messages/query-parameters.js';
import { statsQuery } from '../stats/stats-parameters.js';
import { EscapedPieces } from './escaped-pieces.js';
import { endpointRows, parameterRow } from './forms.js';
import { PAGE_TAIL, page, pageHead, requireHtml } from './page.js';

/** The number of stats on the active page and its update interval: defaults and limits (admin-and-cli.md, "Limits"). */
const COUNT = { name: 'count', preset: 50, least: 1, most: 1000, help: 'How many stats to show' };
const INTERVAL = { name: 'interval', preset: 5, least: 1, most: 3600, help: 'Seconds between two updates' };

/** Parameters without a meaning on the active page, which compares used stats with their previous values. */
const NOT_ACTIVE = ['usedonly', 'histogram_buckets'];

/** Returns a page with the lines of the text form, sent in pieces as they are produced. */
export function statsPage(handler: AdminHandler, query: QueryParameters, lines: AdminResponse['body']): AdminResponse {
  const head = `${pageHead({ title: 'Stats', script: 'stats/stats.js' })}<h1>Stats</h1>
${formTable(endpointRows(handler, { index: 1, values: query, button: 'Show' }))}
<section id='stats-section' aria-label='Stats' hidden></section>
<pre id='stats-text'>`;
  return page(new EscapedPieces(head, piecesOf(lines), `</pre>\n${PAGE_TAIL}`));
}

/**
 * Returns the page of the most active stats, which a script requests periodically.
 * @throws Refusal in a build without pages, and for invalid parameters
 */
export function activeStatsPage(handler: AdminHandler, query: QueryParameters): AdminResponse {
  requireHtml('Active HTML');
  statsQuery(query);
  const parameters = handler.parameters.filter(({ name }) => !NOT_ACTIVE.includes(name));
  const rows = endpointRows({ ...handler, parameters }, { index: 1, values: query, button: 'Show' });
  return page(`${pageHead({ title: 'Active stats', script: 'stats/active.js' })}<h1>Active stats</h1>
${formTable(rows + numberRow(COUNT, query) + numberRow(INTERVAL, query))}
<p class='note no-script'>This page follows stats with JavaScript, which is off: see the
<a href='stats?format=html&amp;usedonly'>plain page</a>.</p>
<section id='active-section' aria-label='Active stats' hidden></section>
${PAGE_TAIL}`);
}

function formTable(rows: string): string {
  return `<table class='home-table form-table'>
<thead><tr><th scope='col'>Parameter</th><th scope='col'>Description</th></tr></thead>
<tbody>
${rows}</tbody>
</table>`;
}

function numberRow({ name, preset, least, most, help }: typeof COUNT, query: QueryParameters): string {
  const given = query.get(name);
  const value = given === undefined ? preset : Number(given);
  if (!Number.isInteger(value) || value < least || value > most) {
    throw new Refusal(400, `${name} must be a whole number from ${least} to ${most}\n`);
  }
  const parameter: AdminParameter = { name, help, preset: String(value) };
  return parameterRow('stats', parameter, { index: 1 }).replace(
    "type='text'",
    `type='number' min='${least}' max='${most}'`,
  );
}

function piecesOf(body: AdminResponse['body']): Pieces {
  if (typeof body === 'string') return [Buffer.from(body)];
  return body instanceof Uint8Array ? [body] : body;
}
