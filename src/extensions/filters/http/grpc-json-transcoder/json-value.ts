// A JSON document, and the parser's errors. Text has one character a byte (UTF-8).

/** A number with a fraction or an exponent, or beyond 64 bits. Others are a `number` or a `bigint`. */
export class JsonDouble {
  constructor(readonly value: number) {}
}

/** An object with its keys in order, also repeated ones. */
export class JsonObject {
  readonly keys: string[] = [];
  readonly values: JsonValue[] = [];

  add(key: string, value: JsonValue): void {
    this.keys.push(key);
    this.values.push(value);
  }
}

export type JsonValue = null | boolean | string | number | bigint | JsonDouble | JsonObject | JsonValue[];

/** Returns how an error message shows a scalar. */
export function shownValue(value: JsonValue): string {
  if (typeof value === 'string') return `"${value}"`;
  return value instanceof JsonDouble ? doubleText(value.value) : String(value);
}

/** Returns a number in 15 significant digits, or in 17 if it needs them: the form that C's %g gives it. */
export function doubleText(value: number): string {
  const short = general(value, 15);
  return Number(short) === value ? short : general(value, 17);
}

/** Returns a float in 6 significant digits, or in 9 if it needs them. */
export function floatText(value: number): string {
  const short = general(value, 6);
  return Math.fround(Number(short)) === value ? short : general(value, 9);
}

/** C's %.<digits>g. */
function general(value: number, digits: number): string {
  if (value === 0) return Object.is(value, -0) ? '-0' : '0';
  const [mantissa, exponent] = value.toExponential(digits - 1).split('e') as [string, string];
  const power = Number(exponent);
  if (power < -4 || power >= digits) {
    const sign = power < 0 ? '-' : '+';
    return `${withoutZeros(mantissa)}e${sign}${String(Math.abs(power)).padStart(2, '0')}`;
  }
  return withoutZeros(value.toFixed(Math.max(0, digits - 1 - power)));
}

function withoutZeros(text: string): string {
  if (!text.includes('.')) return text;
  let end = text.length;
  while (text.charCodeAt(end - 1) === 48) end--;
  return text.slice(0, text.charCodeAt(end - 1) === 46 ? end - 1 : end);
}
