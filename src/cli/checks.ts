// Checks of option values. Each returns a complete error message, or undefined if the value is valid.

import { isIPv6 } from 'node:net';
import { didYouMean } from '../common/text/suggest.js';
import { COMPONENTS } from '../log/components.js';
import { LEVEL_NAMES, parseLevel } from '../log/levels.js';
import { listOf } from './option-row.js';

/** Returns a check for a fixed set of values. `shown`: the values that the message lists. */
export function oneOf(what: string, values: readonly string[], shown: readonly string[], option: string = what) {
  return (value: string): string | undefined =>
    values.includes(value) ? undefined : `unknown ${what} '${value}'; --${option} is ${shown.join(' or ')}`;
}

export function checkLevel(value: string, option = 'log-level'): string | undefined {
  if (parseLevel(value) !== undefined) return undefined;
  return `invalid log level specified '${value}'; levels of --${option} are ${LEVEL_NAMES.join(', ')}`;
}

export function checkComponentLevels(value: string): string | undefined {
  if (value === '') return undefined;
  for (const item of value.split(',')) {
    const [component, level, ...rest] = item.split(':');
    if (component === undefined || level === undefined || rest.length > 0) {
      return `component log level not correctly specified '${item}'; --component-log-level is <component>:<level>,…`;
    }
    if (!(COMPONENTS as readonly string[]).includes(component)) {
      const near = didYouMean(component, COMPONENTS);
      const hint = near || `; components are ${COMPONENTS.join(', ')}`;
      return `invalid component specified '${component}' in --component-log-level${hint}`;
    }
    const problem = checkLevel(level, 'component-log-level');
    if (problem !== undefined) return problem;
  }
  return undefined;
}

/** Checks a value that is sent in headers. */
export function checkOneLine(value: string, option: string): string | undefined {
  return /[\r\n]/.test(value) ? `option --${option} takes one line, as its value is sent in headers` : undefined;
}

export function checkSocketMode(value: string): string | undefined {
  if (/^[0-7]{1,4}$/.test(value)) return undefined;
  return `invalid socket-mode '${value}'; --socket-mode is a permission in octal such as 600`;
}

/**
 * Checks a list of hosts. A host that no Host header can equal would lock out all clients, and a list without hosts would not
 * restrict any.
 */
export function checkHosts(value: string): string | undefined {
  const hosts = listOf(value);
  const wrong = hosts.find((host) => !isIPv6(host) && !/^(\[[0-9a-f:.]+\]|[^\s[\]:/@?#]+)(:[0-9]+)?$/i.test(host));
  const remedy = '--admin-allowed-hosts is <host>,… where a host is a name or an address, with a port or without';
  if (wrong !== undefined) return `invalid host '${wrong}' in --admin-allowed-hosts; ${remedy}`;
  return value !== '' && hosts.length === 0 ? `--admin-allowed-hosts contains no host; ${remedy}` : undefined;
}

export function checkStatsTag(value: string): string | undefined {
  const at = value.indexOf(':');
  const remedy = '--stats-tag is <tag>:<value>, the tag of letters and digits, the value without a dot';
  if (at < 0) return `misformatted stats-tag '${value}'; ${remedy}`;
  const name = value.slice(0, at);
  const tagValue = value.slice(at + 1);
  if (!/^[A-Za-z0-9]+$/.test(name))
    return `misformatted stats-tag '${value}' contains invalid char in '${name}'; ${remedy}`;
  if (tagValue === '' || tagValue.includes('.')) {
    return `misformatted stats-tag '${value}' contains invalid char in '${tagValue}'; ${remedy}`;
  }
  return undefined;
}
