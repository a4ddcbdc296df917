// Writes the list of implemented fields into docs/configuration.md, from the table that the loader obeys.
//
//   npm run build && node dist/scripts/document-fields.js

import { readFileSync, writeFileSync } from 'node:fs';
import { argv } from 'node:process';
import { pathToFileURL } from 'node:url';
import { packagePath } from '../src/common/package-root.js';
import { ACCESS_LOG } from '../src/config/implemented/access-log.js';
import { BOOTSTRAP } from '../src/config/implemented/bootstrap.js';
import { CLUSTER } from '../src/config/implemented/cluster.js';
import { COMMON } from '../src/config/implemented/common.js';
import { HTTP } from '../src/config/implemented/http.js';
import type { AnyRow } from '../src/config/implemented/index.js';
import { LISTENER } from '../src/config/implemented/listener.js';
import { ROUTE } from '../src/config/implemented/route.js';
import { ALL, type ImplementedTable } from '../src/config/implemented/table.js';

const DOCUMENT = packagePath('docs/configuration.md');
const BEGIN = '<!-- fields: written by scripts/document-fields.ts -->';
const END = '<!-- end of fields -->';

const SECTIONS: readonly (readonly [string, ImplementedTable])[] = [
  ['Bootstrap', BOOTSTRAP],
  ['Listeners and the TCP proxy', LISTENER],
  ['HTTP connection manager and HTTP filters', HTTP],
  ['Routes', ROUTE],
  ['Clusters', CLUSTER],
  ['Access logs', ACCESS_LOG],
  ['Small messages that others hold', COMMON],
];

/** The text of the document with its list brought up to date. */
export function withFields(document: string): string {
  const from = document.indexOf(BEGIN);
  const to = document.indexOf(END);
  if (from < 0 || to < from) throw new Error(`docs/configuration.md has lost its markers '${BEGIN}' and '${END}'`);
  const list = SECTIONS.map(([title, table]) => `### ${title}\n\n${messages(table)}\n`).join('\n');
  return `${document.slice(0, from)}${BEGIN}\n\n${list}\n${document.slice(to)}`;
}

/** docs/configuration.md as it is. */
export function readDocument(): string {
  return readFileSync(DOCUMENT, 'utf8');
}

function messages(table: ImplementedTable): string {
  return Object.entries(table as { readonly [name: string]: typeof ALL | { readonly [field: string]: AnyRow } })
    .map(([name, rows]) => `- **${shortName(name)}**: ${rows === ALL ? 'every field' : fields(rows)}`)
    .join('\n');
}

/** `Cluster.RefreshRate` of `envoy.config.cluster.v3.Cluster.RefreshRate`. */
function shortName(name: string): string {
  return name.replace(/^(?:[a-z0-9_]+\.)+/, '');
}

function fields(rows: { readonly [field: string]: AnyRow }): string {
  const texts = Object.entries(rows).map(([field, row]) => `\`${field}\`${remark(row)}`);
  return texts.length === 0 ? 'no field' : texts.join(', ');
}

function remark(row: AnyRow): string {
  if (row === true) return '';
  if ('refused' in row) return ` (refused: ${row.refused})`;
  if ('accepted' in row) return ` (taken without effect: ${row.accepted})`;
  if ('atMost' in row) return ` (at most ${row.atMost}: ${row.reason})`;
  return ` (${row.join(', ')})`;
}

if (import.meta.url === pathToFileURL(argv[1] ?? '').href) writeFileSync(DOCUMENT, withFields(readDocument()));
