// The formats of a statsd line: `prefix.name:value|type`, without tags, with DogStatsD's tags, or with Graphite's.

import type { FlushedStat } from '../../sdk.js';

export interface LineFormat {
  /** Returns the text before `:value` and the text after the type. */
  frame(stat: FlushedStat): { readonly head: string; readonly tail: string };
}

/** The default prefix, which dashboards expect. */
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

/** Replaces characters that are delimiters in a line. */
function word(text: string): string {
  return /[:|@#;=,\s]/.test(text) ? text.replace(/[:|@#;=,\s]/g, '_') : text;
}

/** Like word(), but keeps colons: a DogStatsD tag value ends at the next comma. */
function tagValue(text: string): string {
  return /[|#,\s]/.test(text) ? text.replace(/[|#,\s]/g, '_') : text;
}
