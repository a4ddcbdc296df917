// Compiles an expression to a function. Errors are values here (undefined), as in CEL: `a || b` is true if one of them is, even if the
// other one is an error.
//
// There are no loops: the time of an evaluation is proportional to the size of the expression and of the values it reads.

import { RegexError } from '../common/text/regex.js';
import { type Expression, invalid } from './expression.js';
import type { CelFunction, FunctionTable, Result } from './functions/function-table.js';
import { settingFor } from './functions/functions.js';
import { compilePattern } from './functions/texts.js';
import { CelMap, CelMessage, CelUint, type CelValue, TYPES, textOf } from './values.js';

/** Computes a value from a subject, such as a stream; undefined: an error. */
export type Evaluate<S> = (subject: S) => CelValue | undefined;

/** The variables of expressions about a kind of subject. */
export interface Vocabulary<S> {
  /** Returns the reader of a variable, or of a part of it; undefined: there is none, or no special one for this part. */
  reader(path: readonly string[]): Evaluate<S> | undefined;
}

/** Readers exist for paths such as request.headers['x']. */
const MAX_PATH = 3;

/** Throws a BatonError for a function that does not exist, and for an invalid constant pattern. */
export function compileExpression<S>(
  expression: Expression,
  vocabulary: Vocabulary<S>,
  functions: FunctionTable,
): Evaluate<S> {
  const compile = (part: Expression) => compileExpression(part, vocabulary, functions);
  const path = pathOf(expression);
  const reader = path && vocabulary.reader(path);
  if (reader !== undefined) return reader;
  switch (expression.kind) {
    case 'constant': {
      const { value } = expression;
      return () => value;
    }
    case 'variable': {
      const type = TYPES[expression.name as keyof typeof TYPES];
      return Object.hasOwn(TYPES, expression.name) && type.name === expression.name ? () => type : missing;
    }
    case 'select':
      return expression.isTest
        ? presence(compile(expression.operand), expression.field)
        : selection(compile(expression.operand), expression.field);
    case 'list':
      return listOf(expression.elements.map(compile));
    case 'map':
      return mapOf(expression.entries.map(([key, value]) => [compile(key), compile(value)]));
    case 'call':
      return compileCall(expression, compile, functions);
  }
}

function missing(): undefined {}

/** Returns the path of a.b['c'] as a, b, c; undefined for other expressions and longer ones. */
function pathOf(expression: Expression): string[] | undefined {
  const path: string[] = [];
  let at = expression;
  while (path.length < MAX_PATH) {
    if (at.kind === 'variable') return [at.name, ...path];
    const field = fieldOf(at);
    if (field === undefined) return undefined;
    path.unshift(field.name);
    at = field.operand;
  }
  return undefined;
}

function fieldOf(expression: Expression): { name: string; operand: Expression } | undefined {
  if (expression.kind === 'select' && !expression.isTest)
    return { name: textOf(expression.field), operand: expression.operand };
  if (expression.kind !== 'call' || expression.name !== '_[_]') return undefined;
  const [operand, index] = expression.args;
  if (index?.kind !== 'constant' || typeof index.value !== 'string') return undefined;
  return { name: textOf(index.value), operand: operand! };
}

function selection<S>(operand: Evaluate<S>, field: string): Evaluate<S> {
  return (subject) => {
    const value = operand(subject);
    return value instanceof CelMap || value instanceof CelMessage ? value.get(field) : undefined;
  };
}

function presence<S>(operand: Evaluate<S>, field: string): Evaluate<S> {
  return (subject) => {
    const value = operand(subject);
    return value instanceof CelMap || value instanceof CelMessage ? value.has(field) : undefined;
  };
}

function compileCall<S>(
  { args, isMethod, name }: Extract<Expression, { kind: 'call' }>,
  compile: (part: Expression) => Evaluate<S>,
  functions: FunctionTable,
): Evaluate<S> {
  const operands = args.map(compile);
  const [a, b, c] = operands;
  if (name === '_&&_' && operands.length >= 2) return connected(operands, false);
  if (name === '_||_' && operands.length >= 2) return connected(operands, true);
  if (name === '_?_:_' && operands.length === 3) return conditional(a!, b!, c!);
  if (name === '_[_]' && operands.length === 2) return element(a!, b!);
  const found = functions.get(name);
  if (found === undefined || !isCallable(found, operands.length, isMethod))
    throw unknownFunction(name, operands.length);
  const pattern = args[1];
  if (name === 'matches' && pattern?.kind === 'constant' && typeof pattern.value === 'string')
    return constantMatch(a!, pattern.value);
  return application(found.apply, operands);
}

function isCallable({ least, most, style }: CelFunction, count: number, isMethod: boolean): boolean {
  return count >= least && count <= most && (style === 'both' || (style === 'method') === isMethod);
}

function unknownFunction(name: string, count: number): Error {
  const setting = settingFor(name);
  const remedy = setting === undefined ? '' : `: ${setting} in cel_config enables such functions`;
  return invalid(`there is no function ${name}() with ${count} arguments here${remedy}`);
}

/** && (`decisive`: false) and ||: one decisive operand decides, even if others are errors. */
function connected<S>(operands: readonly Evaluate<S>[], decisive: boolean): Evaluate<S> {
  return (subject) => {
    let isError = false;
    for (let i = 0; i < operands.length; i++) {
      const value = operands[i]!(subject);
      if (value === decisive) return decisive;
      if (value !== !decisive) isError = true;
    }
    return isError ? undefined : !decisive;
  };
}

function conditional<S>(condition: Evaluate<S>, yes: Evaluate<S>, no: Evaluate<S>): Evaluate<S> {
  return (subject) => {
    const value = condition(subject);
    return value === true ? yes(subject) : value === false ? no(subject) : undefined;
  };
}

function element<S>(operand: Evaluate<S>, index: Evaluate<S>): Evaluate<S> {
  return (subject) => {
    const value = operand(subject);
    const key = index(subject);
    if (value === undefined || key === undefined) return undefined;
    if (value instanceof CelMap) return value.get(key);
    return Array.isArray(value) ? (value as readonly CelValue[])[positionOf(key)] : undefined;
  };
}

/** Returns -1, where no list has an element, for a key of another type. */
function positionOf(key: CelValue): number {
  const number = key instanceof CelUint ? Number(key.value) : typeof key === 'bigint' ? Number(key) : key;
  return typeof number === 'number' && Number.isSafeInteger(number) ? number : -1;
}

function constantMatch<S>(operand: Evaluate<S>, pattern: string): Evaluate<S> {
  const regex = patternOf(pattern);
  return (subject) => {
    const value = operand(subject);
    return typeof value === 'string' ? regex.test(textOf(value)) : undefined;
  };
}

function patternOf(pattern: string): RegExp {
  try {
    return compilePattern(pattern);
  } catch (error) {
    if (error instanceof RegexError) throw invalid(`matches(): ${error.message}`);
    throw error;
  }
}

function application<S>(apply: CelFunction['apply'], operands: readonly Evaluate<S>[]): Evaluate<S> {
  const [first, second, third, fourth] = operands;
  if (second === undefined) {
    const one = apply as (a: CelValue) => Result;
    return (subject) => {
      const a = first!(subject);
      return a === undefined ? undefined : one(a);
    };
  }
  return (subject) => {
    const a = first!(subject);
    if (a === undefined) return undefined;
    const b = second(subject);
    if (b === undefined) return undefined;
    if (third === undefined) return apply(a, b, undefined, undefined);
    const c = third(subject);
    if (c === undefined) return undefined;
    const d = fourth?.(subject);
    return fourth !== undefined && d === undefined ? undefined : apply(a, b, c, d);
  };
}

function listOf<S>(elements: readonly Evaluate<S>[]): Evaluate<S> {
  return (subject) => {
    const list: CelValue[] = [];
    for (const each of elements) {
      const value = each(subject);
      if (value === undefined) return undefined;
      list.push(value);
    }
    return list;
  };
}

function mapOf<S>(entries: readonly (readonly [Evaluate<S>, Evaluate<S>])[]): Evaluate<S> {
  return (subject) => {
    const map = new Map<string, readonly [CelValue, CelValue]>();
    for (const [readKey, readValue] of entries) {
      const key = readKey(subject);
      const value = readValue(subject);
      const name = key === undefined ? undefined : keyName(key);
      if (key === undefined || value === undefined || name === undefined || map.has(name)) return undefined;
      map.set(name, [key, value]);
    }
    return new LiteralMap(map);
  };
}

/** A map that an expression lists, by the names of its keys. */
class LiteralMap extends CelMap {
  readonly #map: ReadonlyMap<string, readonly [CelValue, CelValue]>;

  constructor(map: ReadonlyMap<string, readonly [CelValue, CelValue]>) {
    super();
    this.#map = map;
  }

  get size(): number {
    return this.#map.size;
  }

  get(key: CelValue): CelValue | undefined {
    return this.#map.get(keyName(key) ?? '')?.[1];
  }

  has(key: CelValue): boolean {
    return this.#map.has(keyName(key) ?? '');
  }

  entries(): Iterable<readonly [CelValue, CelValue]> {
    return this.#map.values();
  }
}

/** Returns one name for equal keys; undefined for values that cannot be keys. */
function keyName(key: CelValue): string | undefined {
  if (typeof key === 'string') return `"${key}`;
  if (typeof key === 'bigint' || typeof key === 'boolean') return String(key);
  if (key instanceof CelUint) return String(key.value);
  return typeof key === 'number' && Number.isInteger(key) ? String(BigInt(key)) : undefined;
}
