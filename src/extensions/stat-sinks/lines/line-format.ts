// The forms of a statsd line: `prefix.name:value|type`, without tags, with those of DogStatsD or with those of Graphite.

import type { FlushedStat } from '../../sdk.js';

export interface LineFormat {
  /** What stands before `:value`, and what stands behind the type. */
  frame(stat: FlushedStat): { readonly head: string; readonly tail: string };
}

/** `envoy`, the prefix that dashboards know, unless the configuration names another. */
export const DEFAULT_PREFIX = 'envoy';

/** `prefix.full.name:value|c` */
export function plainLines(prefix: string): LineFormat {
  return { frame: (stat) => ({ head: `${prefix}.${word(stat.name)}`, tail: '' }) };
}

/** `prefix.name:value|c|#tag:value,tag:value` */
export function dogLines(prefix: string): LineFormat {
  return {
    frame({ tagged: { name, tags } }) {
      const list = tags.map((tag) => `${word(tag.name)}:${tagValue(tag.value)}`).join(',');
      return { head: `${prefix}.${word(name)}`, tail: list === '' ? '' : `|#${list}` };
    },
  };
}

/** `prefix.name;tag=value;tag=value:value|c` */
export function graphiteLines(prefix: string): LineFormat {
  return {
    frame({ tagged: { name, tags } }) {
      const list = tags.map((tag) => `;${word(tag.name)}=${word(tag.value)}`).join('');
      return { head: `${prefix}.${word(name)}${list}`, tail: '' };
    },
  };
}

/** Text that cannot be mistaken for a part of the line. */
function word(text: string): string {
  return /[:|@#;=,\s]/.test(text) ? text.replace(/[:|@#;=,\s]/g, '_') : text;
}

/** A DogStatsD tag's value goes up to the next comma: colons may stand in it. */
function tagValue(text: string): string {
  return /[|#,\s]/.test(text) ? text.replace(/[|#,\s]/g, '_') : text;
}
