// Writes docs/compatibility.md, the list of implemented extensions and fields, from the loader's table.
//
//   npm run build && node dist/scripts/document-fields.js

import { readFileSync, writeFileSync } from 'node:fs';
import { argv } from 'node:process';
import { pathToFileURL } from 'node:url';
import { operatorNames } from '../src/access-log/operators/operators.js';
import { packagePath } from '../src/common/package/package-root.js';
import { ExtensionCatalog } from '../src/config/catalog/extension.js';
import { ACCESS_LOG } from '../src/config/implemented/access-log.js';
import { BOOTSTRAP } from '../src/config/implemented/bootstrap.js';
import { CLUSTER } from '../src/config/implemented/cluster.js';
import { COMMON } from '../src/config/implemented/common.js';
import { HTTP } from '../src/config/implemented/http.js';
import { type AnyRow, implementedBy, isOpen, rowOf } from '../src/config/implemented/index.js';
import { LISTENER } from '../src/config/implemented/listener.js';
import { obeyedValues } from '../src/config/implemented/refusal.js';
import { ROUTE } from '../src/config/implemented/route.js';
import { STATS_SINKS } from '../src/config/implemented/stats-sinks.js';
import type { ImplementedTable } from '../src/config/implemented/table.js';
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
  ['Common messages', COMMON],
];

const HEAD = `# Compatibility

This page lists which parts of Envoy's v3 API Baton implements: first the extensions, then the fields of each message. Search it for the
full name of a message, such as \`envoy.config.route.v3.RouteAction\`. To check a whole configuration at once, run
\`baton --mode validate -c envoy.yaml\`.

- **Implemented**: the field takes effect. If values are listed in parentheses, only these are accepted.
- **Accepted without effect**: the field makes no difference in Baton, for the stated reason.
- **Refused** and **Not implemented**: a configuration that sets the field is [refused](configuration.md#what-is-accepted-is-obeyed), with
  the field's name and line.

Some options are in messages that connection managers and clusters share. As in Envoy, those that concern requests of clients have no effect in
a cluster (\`accept_http_10\`, \`default_host_for_http_10\`, \`allow_absolute_url\`, \`allow_custom_methods\`, \`headers_with_underscores_action\`).

The list is based on the API of Envoy 1.40 without the contrib extensions. Fields that this API does not have are
[unknown](configuration.md#what-is-accepted-is-obeyed).
Fields that the API hides or marks as not implemented are listed too. The page is generated from the table that the loader uses
(\`npm run build && node dist/scripts/document-fields.js\`).
`;

const REQUEST_HEADERS = `## Request headers that control the router

At the edge, most of them are removed from external requests. The router removes all of them before it sends a request to a host.

| header | |
|---|---|
| \`x-envoy-retry-on\`, \`x-envoy-retry-grpc-on\`, \`x-envoy-max-retries\`, \`x-envoy-retriable-status-codes\`, \`x-envoy-retriable-header-names\` | implemented |
| \`x-envoy-upstream-rq-timeout-ms\`, \`x-envoy-upstream-rq-per-try-timeout-ms\` | implemented |
| \`x-envoy-upstream-rq-timeout-alt-response\` | implemented: timeouts are answered with 204 |
| \`x-envoy-upstream-stream-duration-ms\` | implemented: a try that lasts longer is ended, even if data flows |
| \`x-envoy-hedge-on-per-try-timeout\` | implemented: \`true\` or \`false\` replaces the [policy of the route](hosts.md#a-second-try-beside-a-slow-one) |
| \`x-envoy-upstream-alt-stat-name\` | without effect: requests do not create additional stats |

\`grpc-timeout\` limits gRPC calls on routes with \`grpc_timeout_header_max\` or \`max_grpc_timeout\`. It is not removed: it is
set to the effective timeout, which may be that of \`max_stream_duration\`.
`;

const CREDENTIALS = `## Credentials in a configuration

Envoy redacts fields that the API marks as sensitive. Baton also redacts other credentials, in \`/config_dump\`, in errors and wherever
else it shows a configuration: \`initial_metadata\` of gRPC services, user information in URIs, values of \`authorization\`,
\`cookie\`, \`x-api-key\` and the like in headers that are added or matched, and members of metadata with such names. In Envoy 1.40
\`/config_dump\` shows all of these. In \`command_line_options\` of \`/server_info\`, \`config_yaml\` is redacted too.
[security.md](security.md#what-is-redacted) has the complete list.
`;

const STRICTER = `## Requests that Baton reads more strictly than Envoy

Thousands of requests were sent to both. Baton interprets requests that try to bypass rules about paths, hosts, headers and addresses like
Envoy 1.40, except that it is stricter in these cases:

| a request, or a response to it | Baton | Envoy |
|---|---|---|
| two \`Host\` lines; a URL as target without \`Host\`, or with user information; a \`Host\` such as \`user@a\`, \`:80\` or \`a:x\` | 400 | accepted |
| a zone in the host of a URL as target: \`http://[fe80::1%251]/\` | 400 | accepted if it is a number |
| several codings in \`Transfer-Encoding\`, or one other than \`chunked\` | 400 | 501 |
| folded lines, bare LF and CR, additional spaces in the request line, chunk sizes in other notations | 400 | partly accepted |
| \`normalize_path\` and an escaped dot segment with parameters: \`/a/%2e%2e;x/b\` | \`/b\` | \`/a/..;x/b\` |
| \`merge_slashes\` and a path of only slashes | \`/\` | \`//\` |
| \`Connection\` names \`content-length\`, \`transfer-encoding\` or an \`x-forwarded-…\` field | the field is kept; \`host\`, \`x-forwarded-for\`, \`-host\` and \`-proto\`: 400 | removed; the same |
| \`Connection: upgrade\` names further fields | they are removed | they are kept |
| an upgrade with a chunked body, or to \`h2c\` | no upgrade: forwarded without \`Upgrade\` | 403, or passed on |
| \`x-forwarded-for\` ends with an address with an interface name (\`fe80::1%eth0\`) | not an address | its number is looked up if the address is link-local |
| \`http://a?b=c\` as target | \`/?b=c\` | 404 |
| an empty trusted \`x-forwarded-proto\` | scheme of the connection | 404 |
| more than 100 header lines | 431 | lines that Envoy joins count once |
| \`ext_authz\`: several \`cookie\` lines in the check request | joined with \`; \` | with \`,\`, so that the service reads them as one cookie |
| \`ext_authz\`: fields of the response about its own connection and body (\`connection\`, \`te\`, \`trailer\`, \`upgrade\`, \`content-length\` …) | not forwarded | forwarded if they are listed |
| \`ext_authz\`: an answer of a gRPC service changes such fields, \`:method\` or \`:scheme\` | they stay as they are | they are changed |
| \`ext_authz\`: an answer of a gRPC service has an invalid header, path or host for the request | 500 | forwarded, or 503 |
| \`ext_authz\`: such an answer has an invalid header for the client, or a status that is not from 200 to 999 | left out; 403 | sent |
| \`ext_authz\`: a response with status 101 | treated like a 500: denied | forwarded to the client |
| \`health_check\` with \`cache_time\`: a host answers an upgrade with 101 | not cached | other clients get it too |
`;

const OPERATORS = `## Operators of formats

These work in access logs, in values of headers to add and in formats of local replies. \`%LOCAL_REPLY_BODY%\` has a value only in the latter.
Other operators are refused by name.

${operatorNames()
  .map((name) => `\`%${name}%\``)
  .join(', ')}.
`;

const schema = loadSchema();
const catalog = new ExtensionCatalog(EXTENSIONS);
const table = implementedBy(EXTENSIONS);

/** Returns the generated document. */
export function compatibilityDocument(): string {
  const listed = new Set(SECTIONS.flatMap(([, rows]) => Object.keys(rows)));
  const own = Object.keys(table).filter((name) => !listed.has(name));
  const sections = SECTIONS.map(([title, rows]) => section(title, Object.keys(rows)));
  if (own.length > 0) sections.push(section('Messages of extensions', own.sort()));
  return `${HEAD}\n${extensions()}\n${REQUEST_HEADERS}
${STRICTER}\n${CREDENTIALS}\n${OPERATORS}\n${sections.join('\n')}`;
}

/** Returns the current docs/compatibility.md. */
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
  const isWhole = rows.every(({ row }) => row === true || (isOpen(row) && limits(row) === '' && !('accepted' in row)));
  const implemented = rows.filter(({ row }) => isOpen(row) && !(typeof row === 'object' && 'accepted' in row));
  if (isWhole) parts.push('Every field.');
  else if (implemented.length > 0)
    parts.push(`Implemented: ${implemented.map(({ field, row }) => `\`${field}\`${limits(row!)}`).join(', ')}.`);
  for (const { field, row } of rows) {
    if (typeof row === 'object' && 'accepted' in row)
      parts.push(`Accepted without effect: \`${field}\`; ${row.accepted}.`);
  }
  for (const { field, row } of rows) {
    if (typeof row === 'object' && 'only' in row) parts.push(`With another \`${field}\`: refused; ${row.otherwise}.`);
    if (typeof row === 'object' && 'within' in row) parts.push(`Elsewhere \`${field}\` is refused; ${row.otherwise}.`);
    if (typeof row === 'object' && 'onlyEmpty' in row)
      parts.push(`With fields in \`${field}\`: refused; ${row.onlyEmpty}.`);
    if (typeof row === 'object' && 'onlyFalse' in row)
      parts.push(`With \`${field}: true\`: refused; ${row.onlyFalse}.`);
    if (reasonOf(row)) parts.push(`Refused: \`${field}\`; ${reasonOf(row)}.`);
  }
  const missing = rows.filter(({ row }) => !isOpen(row) && !reasonOf(row)).map(({ field }) => `\`${field}\``);
  if (missing.length > 0) parts.push(`Not implemented: ${missing.join(', ')}.`);
  return `${parts.join('\n\n')}\n`;
}

function limits(row: AnyRow): string {
  if (row === true) return '';
  if ('only' in row) return ` (${row.only.map((name) => `\`${name}\``).join(' or ')})`;
  if ('within' in row) return ` (in ${row.within.map((name) => name.split('.v3.')[1]).join(', ')})`;
  if ('onlyEmpty' in row) return ' (`{}`)';
  if ('data' in row) return ` (${row.data.map((name) => `\`${name}\``).join(' or ')})`;
  if ('onlyFalse' in row) return ' (`false`)';
  if (!('byValue' in row)) return '';
  const values = obeyedValues(row);
  return values.length === Object.keys(row.byValue).length ? '' : ` (${values.join(', ')})`;
}

/** Returns why a field is refused; '' if it is just not implemented. */
function reasonOf(row: AnyRow | undefined): string {
  return typeof row === 'object' && 'refused' in row ? row.refused : '';
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

\`typed_per_filter_config\` accepts the filter's own route message, directly or in \`envoy.config.route.v3.FilterConfig\`. A filter that is
\`disabled\` in the chain runs on routes that configure it; with \`FilterConfig\` a route can also enable it with the configuration of the chain
(\`config: {}\`), or disable any filter (\`disabled: true\`). The most specific configuration applies.

Envoy's other extensions are not implemented. These are their packages below \`envoy.extensions\`:

${otherPackages().join('\n')}
`;
}

/** Returns the packages without an implemented extension, one line per group. */
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
