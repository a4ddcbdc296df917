// Numbers of a YAML text as Envoy reads them.

/**
 * The value of an integer without quotes as yaml-cpp's streams take it: octal behind a leading zero, hexadecimal behind `0x`, of 64
 * bits with a sign. Undefined for anything else: `08`, or what is too large.
 */
export function yamlInteger(text: string): bigint | undefined {
  const [, sign, hexadecimal, octal, decimal] = INTEGER.exec(text) ?? [];
  const digits = hexadecimal ?? (octal === undefined ? decimal : `0o${octal}`);
  if (digits === undefined || digits.length > MAX_DIGITS) return undefined;
  const value = sign === '-' ? -BigInt(digits) : BigInt(digits);
  return BigInt.asIntN(64, value) === value ? value : undefined;
}

/**
 * Numbers without quotes that are something else as a text, by the map or list that holds them: a number does not tell `1.10` from `1.1`.
 * JSON has none: what it means as a text, it quotes.
 */
const texts = new WeakMap<object, Map<string | number, string>>();

/** What the number of that key is as a text; undefined when Envoy refuses it as one: an integer of 32 bits. */
export function textOfNumber(holder: object, key: string | number): string | undefined {
  return texts.get(holder)?.get(key);
}

/** Notes how a number in a map or list is written. */
export function noteNumber(holder: object, key: string | number, written: string): void {
  const text = asText(written);
  if (text === undefined) return;
  const known = texts.get(holder);
  if (known === undefined) texts.set(holder, new Map([[key, text]]));
  else known.set(key, text);
}

/** Itself when it is no integer, as Envoy does not read it then (`1.0`, `1e3`), and the decimal form of one of more than 32 bits. */
function asText(written: string): string | undefined {
  const integer = yamlInteger(written);
  if (integer === undefined) return written;
  return BigInt.asIntN(32, integer) === integer ? undefined : String(integer);
}

const INTEGER = /^([-+]?)(?:(0x[0-9a-f]+)|0([0-7]+)|(0|[1-9]\d*))$/i;

/** More than 64 bits in any of the forms. */
const MAX_DIGITS = 100;
