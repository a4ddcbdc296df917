// Writes docs/compatibility.md, the list of what is implemented, from the table that the loader obeys.
//
//   npm run build && node dist/scripts/document-fields.js

import { readFileSync, writeFileSync } from 'node:fs';
import { argv } from 'node:process';
import { pathToFileURL } from 'node:url';
import { operatorNames } from '../src/access-log/operators.js';
import { packagePath } from '../src/common/package-root.js';
import { ExtensionCatalog } from '../src/config/extension.js';
import { ACCESS_LOG } from '../src/config/implemented/access-log.js';
import { BOOTSTRAP } from '../src/config/implemented/bootstrap.js';
import { CLUSTER } from '../src/config/implemented/cluster.js';
import { COMMON } from '../src/config/implemented/common.js';
import { HTTP } from '../src/config/implemented/http.js';
import { type AnyRow, implementedBy, rowOf } from '../src/config/implemented/index.js';
import { LISTENER } from '../src/config/implemented/listener.js';
import { ROUTE } from '../src/config/implemented/route.js';
import { STATS_SINKS } from '../src/config/implemented/stats-sinks.js';
import { ALL, type ImplementedTable } from '../src/config/implemented/table.js';
import { messageNameOf } from '../src/config/schema/message-name.js';
import { loadSchema } from '../src/config/schema/schema.js';
import { EXTENSIONS } from '../src/extensions/index.js';

const DOCUMENT = packagePath('docs/compatibility.md');

const SECTIONS: readonly (readonly [string, ImplementedTable])[] = [
  ['Bootstrap', BOOTSTRAP],
  ['Listeners and the TCP proxy', LISTENER],
  ['HTTP connection manager and HTTP filters', HTTP],
  ['Routes', ROUTE],
  ['Clusters', CLUSTER],
  ['Access logs', ACCESS_LOG],
  ['Stats sinks', STATS_SINKS],
  ['Small messages that others hold', COMMON],
];

const HEAD = `# Compatibility

What of Envoy's v3 API Baton implements, by message: this page is written from the table that the loader obeys
(\`npm run build && node dist/scripts/document-fields.js\`). A field that is set and not implemented is refused by name, with
its line; [configuration.md](configuration.md) tells how. Fields and enum values that the API has marked as not implemented or
has hidden are listed like all others.
`;

const REQUEST_HEADERS = `## Header fields by which requests steer the router

Requests from outside lose most of them at the edge; the router takes all of them from what it sends to a host.

| field | |
|---|---|
| \`x-envoy-retry-on\`, \`x-envoy-retry-grpc-on\`, \`x-envoy-max-retries\`, \`x-envoy-retriable-status-codes\`, \`x-envoy-retriable-header-names\` | obeyed |
| \`x-envoy-upstream-rq-timeout-ms\`, \`x-envoy-upstream-rq-per-try-timeout-ms\` | obeyed |
| \`x-envoy-upstream-rq-timeout-alt-response\` | obeyed: timeouts are answered with 204 |
| \`x-envoy-upstream-stream-duration-ms\` | obeyed: a try that lasts longer is ended, whatever moves |
| \`x-envoy-hedge-on-per-try-timeout\` | without effect: no request is sent twice at the same time |
| \`x-envoy-upstream-alt-stat-name\` | without effect: requests create no statistics of their own |
`;

const OPERATORS = `## Operators of formats

In access logs, and in values of headers that are added. Others are refused by name.

${operatorNames()
  .map((name) => `\`%${name}%\``)
  .join(', ')}.
`;

const schema = loadSchema();
const catalog = new ExtensionCatalog(EXTENSIONS);
const table = implementedBy(EXTENSIONS);

/** The document as it has to be. */
export function compatibilityDocument(): string {
  const listed = new Set(SECTIONS.flatMap(([, rows]) => Object.keys(rows)));
  const own = Object.keys(table).filter((name) => !listed.has(name));
  const sections = SECTIONS.map(([title, rows]) => section(title, Object.keys(rows)));
  if (own.length > 0) sections.push(section("Extensions' own messages", own.sort()));
  return `${HEAD}\n${extensions()}\n${REQUEST_HEADERS}\n${OPERATORS}\n${sections.join('\n')}`;
}

/** docs/compatibility.md as it is. */
export function readDocument(): string {
  return readFileSync(DOCUMENT, 'utf8');
}

function section(title: string, names: readonly string[]): string {
  return `## ${title}\n\n${names.map(message).join('\n')}`;
}

function message(name: string): string {
  const fields = [...schema.message(name)!.fields.keys()];
  const rows = fields.map((field) => ({ field, row: rowOf(table, name, field) }));
  const parts = [`### ${name}`];
  const isWhole = (table as { readonly [name: string]: unknown })[name] === ALL;
  const implemented = rows.filter(
    ({ row }) => row === true || (typeof row === 'object' && !('refused' in row) && !('accepted' in row)),
  );
  if (isWhole) parts.push('Every field.');
  else if (implemented.length > 0)
    parts.push(`Implemented: ${implemented.map(({ field, row }) => `\`${field}\`${limits(row!)}`).join(', ')}.`);
  for (const { field, row } of rows) {
    if (typeof row === 'object' && 'accepted' in row)
      parts.push(`Accepted without effect: \`${field}\`; ${row.accepted}.`);
  }
  for (const { field, row } of rows) {
    if (typeof row === 'object' && 'refused' in row) parts.push(`Refused: \`${field}\`; ${row.refused}.`);
  }
  const missing = rows.filter(({ row }) => row === undefined).map(({ field }) => `\`${field}\``);
  if (missing.length > 0) parts.push(`Not implemented: ${missing.join(', ')}.`);
  return `${parts.join('\n\n')}\n`;
}

function limits(row: AnyRow): string {
  if (row === true) return '';
  return Array.isArray(row) ? ` (${row.join(', ')})` : '';
}

function extensions(): string {
  const rows = catalog.list().map(({ category, name, typeUrls }) => {
    const messages = typeUrls.map((url) => messageNameOf(url).replace(/.*\./, ''));
    return `| \`${category}\` | \`${name}\` | ${messages.join(', ')} |`;
  });
  return `## Extensions

| category | name | messages |
|---|---|---|
${rows.join('\n')}

What \`typed_per_filter_config\` says to a filter is its own message. \`envoy.config.route.v3.FilterConfig\`, by which a route
disables a filter or configures one in an optional way, is refused; a filter that is \`disabled\` in the chain runs on routes
that configure it.

Envoy's other extensions are not implemented; their packages below \`envoy.extensions\`:

${otherPackages().join('\n')}
`;
}

/** Packages of extensions without any that is implemented, a line for each group. */
function otherPackages(): string[] {
  const packageOf = (name: string) =>
    name.replace(/\.v\d+(alpha|beta)?\d*\.[A-Z].*/, '').replace('envoy.extensions.', '');
  const known = new Set(catalog.list().flatMap(({ typeUrls }) => typeUrls.map((url) => packageOf(messageNameOf(url)))));
  const groups = new Map<string, Set<string>>();
  for (const name of schema.messageNames()) {
    if (!name.startsWith('envoy.extensions.') || known.has(packageOf(name))) continue;
    const parts = packageOf(name).split('.');
    const group = parts.slice(0, parts[0] === 'filters' ? 2 : 1).join('.');
    const rest = parts.slice(group.split('.').length).join('.');
    if (!groups.has(group)) groups.set(group, new Set());
    if (rest !== '') groups.get(group)!.add(rest);
  }
  return [...groups].map(([group, names]) => `- \`${group}\`${names.size > 0 ? `: ${[...names].join(', ')}` : ''}`);
}

if (import.meta.url === pathToFileURL(argv[1] ?? '').href) writeFileSync(DOCUMENT, compatibilityDocument());
