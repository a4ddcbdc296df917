// Names, labels and numbers as monitoring systems accept them (FACTS §3.6).

import type { Tag } from '../tags.js';

/** A label whose value is not escaped. */
export interface Label {
  readonly name: string;
  readonly value: string;
}

/** Returns `envoy_cluster_upstream_rq_xx` for `cluster.upstream_rq_xx`. */
export function metricName(name: string): string {
  return `envoy_${underscored(name)}`;
}

/** The reserved label of a metric's own name: an answer that contains it is unreadable as a whole. */
const METRIC_NAME = '__name__';

/**
 * Returns tags as labels: `envoy_cluster_name` for `envoy.cluster_name`. A metric is unreadable if it has a label twice: of
 * tags with the same label name the first counts, and tags named like the metric name or `own`, a label of the format, are
 * dropped.
 */
export function labelsOf(tags: readonly Tag[], own = ''): Label[] {
  const labels: Label[] = [];
  for (const tag of tags) {
    const name = labelName(tag.name);
    if (name === own || name === METRIC_NAME || labels.some((label) => label.name === name)) continue;
    labels.push({ name, value: tag.value });
  }
  return labels;
}

/** Returns a tag's name as a label name, which must not begin with a digit. */
function labelName(name: string): string {
  const text = underscored(name);
  return /^\d/.test(text) ? `_${text}` : text;
}

function underscored(name: string): string {
  return name.replace(/[^a-zA-Z0-9_]/g, '_');
}

/** Escapes a label's value for the text format. */
export function escapeValue(value: string): string {
  return /[\\\n"]/.test(value) ? value.replace(/[\\\n"]/g, (char) => (char === '\n' ? '\\n' : `\\${char}`)) : value;
}

/** Returns up to 32 significant digits, as printf's %.32g writes numbers of common magnitude: 115, 0.25, nan. */
export function formatExact(value: number): string {
  if (Number.isNaN(value)) return 'nan';
  if (!Number.isFinite(value)) return value > 0 ? '+Inf' : '-Inf';
  if (Number.isSafeInteger(value)) return String(value);
  const text = value.toPrecision(32);
  return text.includes('e') ? text.replace(/\.?0+e/, 'e') : text.replace(/\.?0+$/, '');
}

/** Returns the shortest decimal that equals this number, without an exponent. */
export function formatPlain(value: number): string {
  const text = String(value);
  const exponent = text.indexOf('e');
  if (exponent < 0) return text;
  const [whole, fraction = ''] = text.slice(0, exponent).split('.') as [string, string?];
  const power = Number(text.slice(exponent + 1));
  if (power > 0) return whole + fraction.padEnd(power, '0');
  const sign = whole.startsWith('-') ? '-' : '';
  return `${sign}0.${'0'.repeat(-power - 1)}${whole.slice(sign.length)}${fraction}`;
}
