// A runtime value: the text that somebody wrote, and what it means as a number and as a share, read once.

/** A share as runtime writes it: numerator out of 100, 10,000 or 1,000,000. */
export interface Fraction {
  readonly numerator: number;
  readonly denominator: number;
}

/** One value with all its readings (FACTS §10 "Value kinds"); one that it does not have is undefined. Plain data. */
export interface RuntimeValue {
  /** As /runtime shows it. */
  readonly text: string;
  readonly double: number | undefined;
  /** The double without its decimals; only of numbers from 0. */
  readonly integer: number | undefined;
  /** Only of values that have a numerator: a plain number is per hundred to those who ask for a share. */
  readonly fraction: Fraction | undefined;
}

/** A value written as text: in a file, through the admin interface, or as a string of a static layer. */
export function valueOfText(text: string): RuntimeValue {
  const trimmed = text.trim();
  if (NUMBER.test(trimmed)) return valueOfNumber(Number(trimmed), text);
  return value(text, { fraction: fractionOfText(trimmed) });
}

/**
 * A value of a static layer, as JSON has it: a number, a flag, a text or a FractionalPercent; undefined for anything else
 * (lists, null).
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

/** Whether two values are the same in every reading. */
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

/** `{numerator: 5, denominator: MILLION}` in YAML or JSON, with or without braces, on one line or several. */
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

/** Fields of a FractionalPercent, of which either may be absent; undefined when there are others, or none makes sense. */
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
