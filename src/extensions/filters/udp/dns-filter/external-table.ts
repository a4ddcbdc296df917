// Reads external_dns_table: a DnsTable in YAML or JSON, which arrives outside of the configuration.

import { createRequire } from 'node:module';
import type * as Yaml from 'yaml';
import type { DnsTable } from '../../../../config/generated/api.js';
import { durationMs, parseIp } from '../../../sdk.js';

type Fields = Readonly<Record<string, unknown>>;

/** Throws an Error that names the first mistake. */
export function readTable(bytes: Uint8Array): DnsTable {
  // A worker without such a table does not load the library.
  const { parse } = createRequire(import.meta.url)('yaml') as typeof Yaml;
  const table = object(parse(Buffer.from(bytes).toString(), { maxAliasCount: 0 }), 'the table');
  check(table, 'the table', { external_retry_count: number(3), virtual_domains: each(checkDomain) });
  return table as DnsTable;
}

type Check = (value: unknown, where: string) => void;

function checkDomain(value: unknown, where: string): void {
  const domain = object(value, where);
  check(domain, where, { name: text, answer_ttl: duration, endpoint: checkEndpoint });
  if (domain['name'] === undefined) throw new Error(`${where} has no name`);
}

function checkEndpoint(value: unknown, where: string): void {
  check(object(value, where), where, {
    address_list: (list, at) => check(object(list, at), at, { address: each(address) }),
    cluster_name: text,
    service_list: (list, at) => check(object(list, at), at, { services: each(checkService) }),
  });
}

function checkService(value: unknown, where: string): void {
  check(object(value, where), where, {
    service_name: text,
    protocol: (protocol, at) => check(object(protocol, at), at, { number: number(254), name: text }),
    ttl: duration,
    targets: each((target, at) =>
      check(object(target, at), at, {
        host_name: text,
        cluster_name: text,
        priority: number(65535),
        weight: number(65535),
        port: number(65535),
      }),
    ),
  });
}

/** Checks the fields of a message. Throws for one that it does not have. */
function check(fields: Fields, where: string, checks: Readonly<Record<string, Check>>): void {
  for (const [name, value] of Object.entries(fields)) {
    if (!Object.hasOwn(checks, name)) throw new Error(`${where} has an unknown field '${name}'`);
    checks[name]!(value, `${where}.${name}`);
  }
}

function object(value: unknown, where: string): Fields {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new Error(`${where} is not a message`);
  return value as Fields;
}

function each(of: Check): Check {
  return (list, where) => {
    if (!Array.isArray(list)) throw new Error(`${where} is not a list`);
    for (const [index, element] of list.entries()) of(element, `${where}[${index}]`);
  };
}

function text(value: unknown, where: string): void {
  if (typeof value !== 'string' || value === '') throw new Error(`${where} is not a text`);
}

function address(value: unknown, where: string): void {
  if (typeof value !== 'string' || parseIp(value) === undefined) throw new Error(`${where} is not an IP address`);
}

function number(max: number): Check {
  return (value, where) => {
    if (Number.isInteger(value) && (value as number) >= 0 && (value as number) <= max) return;
    throw new Error(`${where} is not a number up to ${max}`);
  };
}

function duration(value: unknown, where: string): void {
  if (typeof value === 'string' && /^\d{1,9}(\.\d{1,9})?s$/.test(value) && durationMs(value) >= 0) return;
  throw new Error(`${where} is not a duration such as 60s`);
}
