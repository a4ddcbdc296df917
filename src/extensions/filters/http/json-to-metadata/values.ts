// The conversions of values of JSON bodies.

import type { JsonToMetadata_ValueType as ValueType } from '../../../../config/generated/api.js';
import { decimalOf, type Json } from '../../../sdk.js';

/** As in Envoy, longer texts are left out. */
const MAX_BYTES = 8 * 1024;

/** Returns the conversion to a type. As in Envoy, null, lists and structures are converted to none. */
export function convert(type: ValueType): (value: Json) => Json | undefined {
  return type === 'STRING' ? textOf : type === 'NUMBER' ? numberOf : plainOf;
}

function plainOf(value: Json): Json | undefined {
  if (typeof value === 'string') return shortText(value);
  if (typeof value === 'number') return Number.isFinite(value) ? value : undefined;
  return typeof value === 'boolean' ? value : undefined;
}

function textOf(value: Json): string | undefined {
  if (typeof value === 'boolean') return value ? '1' : '0';
  if (typeof value === 'string') return shortText(value);
  if (typeof value !== 'number' || !Number.isFinite(value)) return undefined;
  // As Envoy prints doubles. A number without fraction counts as an integer.
  return Number.isInteger(value) ? BigInt(value).toString() : value.toFixed(6);
}

function numberOf(value: Json): number | undefined {
  if (typeof value === 'boolean') return value ? 1 : 0;
  if (typeof value === 'number') return Number.isFinite(value) ? value : undefined;
  if (typeof value !== 'string' || value.length > MAX_BYTES) return undefined;
  const number = decimalOf(value.trim());
  return Number.isFinite(number) ? number : undefined;
}

function shortText(text: string): string | undefined {
  return Buffer.byteLength(text) > MAX_BYTES ? undefined : text;
}
