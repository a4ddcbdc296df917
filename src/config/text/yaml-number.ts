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
 * What a number without quotes is as a text: itself when it is no integer, as Envoy does not read it then (`1.0`, `1e3`), and the decimal
 * form of one of more than 32 bits. Undefined for the rest, which Envoy refuses as a text.
 */
export function textOfNumber(written: string): string | undefined {
  const integer = yamlInteger(written);
  if (integer === undefined) return written;
  return BigInt.asIntN(32, integer) === integer ? undefined : String(integer);
}

const INTEGER = /^([-+]?)(?:(0x[0-9a-f]+)|0([0-7]+)|(0|[1-9]\d*))$/i;

/** More than 64 bits in any of the forms. */
const MAX_DIGITS = 100;
