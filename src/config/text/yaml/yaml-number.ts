// Numbers and booleans in YAML, as Envoy reads them.

/**
 * Parses an unquoted integer like yaml-cpp's streams: octal with a leading zero, hexadecimal with `0x`, signed with 64 bits.
 * Returns undefined for other texts, such as `08`, and for larger numbers.
 */
export function yamlInteger(text: string): bigint | undefined {
  const [, sign, hexadecimal, octal, decimal] = INTEGER.exec(text) ?? [];
  const digits = hexadecimal ?? (octal === undefined ? decimal : `0o${octal}`);
  if (digits === undefined || digits.length > MAX_DIGITS) return undefined;
  const value = sign === '-' ? -BigInt(digits) : BigInt(digits);
  return BigInt.asIntN(64, value) === value ? value : undefined;
}

/**
 * The texts of unquoted numbers and boolean words, keyed by the map or list that contains them: a number cannot distinguish
 * `1.10` from `1.1`, nor a string `yes` from `"yes"`. JSON texts need none, because their strings are quoted.
 */
const texts = new WeakMap<object, Map<string | number, string>>();

/** Returns the number with that key as a string. Undefined if Envoy does not accept it as a string: an integer of 32 bits. */
export function textOfNumber(holder: object, key: string | number): string | undefined {
  return texts.get(holder)?.get(key);
}

/**
 * Returns the boolean that the string with that key is where no field defines a type: YAML 1.1 has unquoted `yes`, `Off` and `n`
 * as booleans. Undefined for all other strings.
 */
export function booleanOfWord(holder: object, key: string | number): boolean | undefined {
  const word = texts.get(holder)?.get(key);
  return word === undefined ? undefined : TRUE_WORD.test(word) || (FALSE_WORD.test(word) ? false : undefined);
}

/** Returns whether an unquoted text is a boolean in YAML 1.1 and a string in YAML 1.2. */
export function isBooleanWord(text: string): boolean {
  return text.length <= 3 && (TRUE_WORD.test(text) || FALSE_WORD.test(text));
}

/** In lower, upper or capitalized form. */
const TRUE_WORD = /^(?:[yY]|yes|Yes|YES|on|On|ON)$/;
const FALSE_WORD = /^(?:[nN]|no|No|NO|off|Off|OFF)$/;

/** Records the source of a number or boolean word in a map or list. */
export function noteScalar(holder: object, key: string | number, written: string): void {
  const text = asText(written);
  if (text !== undefined) setNote(holder, key, text);
}

function setNote(holder: object, key: string | number, text: string): void {
  const known = texts.get(holder);
  if (known === undefined) texts.set(holder, new Map([[key, text]]));
  else known.set(key, text);
}

/** Copies what is recorded of a value to another map that has the value under the same key. */
export function copyNote(from: object, key: string, to: object): void {
  const text = texts.get(from)?.get(key);
  if (text !== undefined) setNote(to, key, text);
}

/**
 * Returns the text itself if it is not an integer for Envoy (`1.0`, `1e3`), and the decimal form of an integer of more than 32
 * bits.
 */
function asText(written: string): string | undefined {
  const integer = yamlInteger(written);
  if (integer === undefined) return written;
  return BigInt.asIntN(32, integer) === integer ? undefined : String(integer);
}

const INTEGER = /^([-+]?)(?:(0x[0-9a-f]+)|0([0-7]+)|(0|[1-9]\d*))$/i;

/** More than 64 bits in any notation. */
const MAX_DIGITS = 100;
