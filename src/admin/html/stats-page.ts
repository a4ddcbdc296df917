// /stats for people: the form with its parameters, then the stats as text, which a script turns into a table.

import { type AdminHandler, type AdminParameter, type AdminResponse, type Pieces, Refusal } from '../admin-handler.js';
import type { QueryParameters } from '../http/messages/query-parameters.js';
import { statsQuery } from '../stats/stats-parameters.js';
import { EscapedPieces } from './escaped-pieces.js';
import { endpointRows, parameterRow } from './forms.js';
import { PAGE_TAIL, page, pageHead, requireHtml } from './page.js';

/** How many stats the active page shows, and how often it asks: what it begins with (admin-and-cli.md, "Limits"). */
const COUNT = { name: 'count', preset: 50, least: 1, most: 1000, help: 'How many stats to show' };
const INTERVAL = { name: 'interval', preset: 5, least: 1, most: 3600, help: 'Seconds between two updates' };

/** Parameters that mean nothing where only stats in use are compared with what they were before. */
const NOT_ACTIVE = ['usedonly', 'histogram_buckets'];

/** The lines of the text form in a page, sent piece by piece as they are made. */
export function statsPage(handler: AdminHandler, query: QueryParameters, lines: AdminResponse['body']): AdminResponse {
  const head = `${pageHead({ title: 'Stats', script: 'stats/stats.js' })}<h1>Stats</h1>
${formTable(endpointRows(handler, { index: 1, values: query, button: 'Show' }))}
<section id='stats-section' aria-label='Stats' hidden></section>
<pre id='stats-text'>`;
  return page(new EscapedPieces(head, piecesOf(lines), `</pre>\n${PAGE_TAIL}`));
}

/**
 * The stats that change most often, for which a script asks again and again.
 * @throws Refusal in a build without pages, and for parameters that mean nothing
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
