// Names, labels and numbers as monitoring systems take them (FACTS §3.6).

import type { Tag } from '../tags.js';

/** A label as it is written: its value is not escaped. */
export interface Label {
  readonly name: string;
  readonly value: string;
}

/** `envoy_cluster_upstream_rq_xx` for `cluster.upstream_rq_xx`. */
export function metricName(name: string): string {
  return `envoy_${underscored(name)}`;
}

/** The label that holds a metric's own name: with one more of it nothing of an answer can be read. */
const METRIC_NAME = '__name__';

/**
 * Tags as labels: `envoy_cluster_name` for `envoy.cluster_name`. A metric has each label once, or nothing can read it: of tags
 * whose names become the same, the first counts, and none may be called like its name or `own`, the label that it needs itself.
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

/** A label does not begin with a digit. */
function labelName(name: string): string {
  const text = underscored(name);
  return /^\d/.test(text) ? `_${text}` : text;
}

function underscored(name: string): string {
  return name.replace(/[^a-zA-Z0-9_]/g, '_');
}

/** A label's value between its quotes in the text format. */
export function escapeValue(value: string): string {
  return /[\\\n"]/.test(value) ? value.replace(/[\\\n"]/g, (char) => (char === '\n' ? '\\n' : `\\${char}`)) : value;
}

/** Up to 32 significant digits, as printf's %.32g has them for numbers of a common size: 115, 0.25, nan. */
export function formatExact(value: number): string {
  if (Number.isNaN(value)) return 'nan';
  if (!Number.isFinite(value)) return value > 0 ? '+Inf' : '-Inf';
  if (Number.isSafeInteger(value)) return String(value);
  const text = value.toPrecision(32);
  return text.includes('e') ? text.replace(/\.?0+e/, 'e') : text.replace(/\.?0+$/, '');
}

/** The shortest decimal that means this number, never with an exponent. */
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
