// A runtime value: its text, parsed once as a number and as a fraction.

/** A fraction with a denominator of 100, 10,000 or 1,000,000. */
export interface Fraction {
  readonly numerator: number;
  readonly denominator: number;
}

/** A value with all its readings (FACTS §10 "Value kinds"); undefined for readings that it does not have. Plain data. */
export interface RuntimeValue {
  /** The text that /runtime shows. */
  readonly text: string;
  readonly double: number | undefined;
  /** The double rounded down; only of numbers from 0 to 2^64. */
  readonly integer: number | undefined;
  /** Only for values with a numerator: readers of fractions take a plain number as a percentage. */
  readonly fraction: Fraction | undefined;
}

/** Parses a text from a file, the admin interface, or a string of a static layer. */
export function valueOfText(text: string): RuntimeValue {
  const trimmed = text.trim();
  if (NUMBER.test(trimmed)) return valueOfNumber(Number(trimmed), text);
  return value(text, { fraction: fractionOfText(trimmed) });
}

/**
 * Converts a JSON value of a static layer: a number, boolean, string or FractionalPercent; undefined for other values (lists,
 * null).
 */
export function valueOfJson(json: unknown): RuntimeValue | undefined {
  switch (typeof json) {
    case 'number':
      return valueOfNumber(json, String(json));
    case 'boolean':
      return value(String(json), {});
    case 'string':
      return valueOfText(json);
    case 'object': {
      if (json === null || Array.isArray(json)) return undefined;
      return value(JSON.stringify(json), { fraction: fractionOfFields(Object.entries(json)) });
    }
    default:
      return undefined;
  }
}

/** Returns whether two values are the same in every reading. */
export function isSameValue(one: RuntimeValue | undefined, other: RuntimeValue | undefined): boolean {
  if (one === other) return true;
  return (
    one?.text === other?.text &&
    one?.double === other?.double &&
    one?.integer === other?.integer &&
    one?.fraction?.numerator === other?.fraction?.numerator &&
    one?.fraction?.denominator === other?.fraction?.denominator
  );
}

const NUMBER = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?$/;
const MAX_UINT64 = 2 ** 64;
const MAX_UINT32 = 2 ** 32 - 1;

const DENOMINATORS: Readonly<Record<string, number>> = { HUNDRED: 100, TEN_THOUSAND: 10_000, MILLION: 1_000_000 };

function value(text: string, readings: Partial<RuntimeValue>): RuntimeValue {
  return { text, double: undefined, integer: undefined, fraction: undefined, ...readings };
}

function valueOfNumber(double: number, text: string): RuntimeValue {
  return value(text, {
    double,
    integer: double >= 0 && double <= MAX_UINT64 ? Math.floor(double) : undefined,
  });
}

/** Parses `{numerator: 5, denominator: MILLION}` in YAML or JSON, with or without braces, on one line or several. */
function fractionOfText(text: string): Fraction | undefined {
  const inside = text.startsWith('{') && text.endsWith('}') ? text.slice(1, -1) : text;
  const fields = inside
    .split(/[,\n]/)
    .map((field) => field.trim())
    .filter((field) => field !== '')
    .map((field) => /^(["']?)(\w+)\1\s*:\s*(["']?)(\w+)\3$/.exec(field));
  if (fields.length === 0) return undefined;
  const pairs: [string, unknown][] = [];
  for (const field of fields) {
    if (field === null) return undefined;
    pairs.push([field[2]!, /^\d+$/.test(field[4]!) ? Number(field[4]) : field[4]!]);
  }
  return fractionOfFields(pairs);
}

/** Parses the fields of a FractionalPercent, each of which may be absent; returns undefined for unknown or invalid fields. */
function fractionOfFields(fields: readonly (readonly [string, unknown])[]): Fraction | undefined {
  let numerator = 0;
  let denominator = DENOMINATORS['HUNDRED']!;
  for (const [name, field] of fields) {
    if (name === 'numerator' && isUint32(field)) numerator = field;
    else if (name === 'denominator' && typeof field === 'string' && Object.hasOwn(DENOMINATORS, field))
      denominator = DENOMINATORS[field]!;
    else return undefined;
  }
  return { numerator, denominator };
}

function isUint32(number: unknown): number is number {
  return typeof number === 'number' && Number.isInteger(number) && number >= 0 && number <= MAX_UINT32;
}
