// JSON text with the keys of objects in byte order, as Envoy writes metadata.

import type { Json, Struct } from '../../config/generated/api.js';
import { compareBytes } from '../formats/compare-bytes.js';

export function sortedJson(value: Json): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${(value as readonly Json[]).map(sortedJson).join(',')}]`;
  const keys = Object.keys(value).sort(compareBytes);
  return `{${keys.map((key) => `${JSON.stringify(key)}:${sortedJson((value as Struct)[key]!)}`).join(',')}}`;
}
