// Parses the text of an expression with the parser of @marcbachmann/cel-js, and turns its tree into an Expression.

import { createRequire } from 'node:module';
import type * as Cel from '@marcbachmann/cel-js';
import type { ASTNode } from '@marcbachmann/cel-js';
import { messageOf } from '../common/errors/errors.js';
import { byteText } from '../common/text/byte-text.js';
import { type Expression, invalid, PartCounter } from './expression.js';
import { CelUint, type CelValue } from './values.js';

/** Characters. Longer texts are refused. */
const MAX_TEXT = 100_000;
const MAX_INT = 2n ** 63n - 1n;

/** The dots of .request.path and .5, which the parser does not take. Names mean the same without it: they are in no container. */
const LEADING_DOT = /^\.\w/;
/** More leading dots are refused: the text is parsed once for each. */
const MAX_LEADING_DOTS = 100;

/** The parser's operators of two operands, by their names in messages. */
const BINARY = new Map(
  ['!=', '==', '+', '-', '*', '/', '%', '<', '<=', '>', '>='].map((name) => [name as string, `_${name}_`]),
).set('in', '@in');
const MACROS = new Set(['all', 'exists', 'exists_one', 'filter', 'map']);

/** Parses a text. Throws a BatonError if it is no expression. */
export function parseExpression(text: string): Expression {
  if (text.length > MAX_TEXT) throw invalid(`the expression has more than ${MAX_TEXT} characters`);
  const counter = new PartCounter();
  return convert(parsed(text), 0, counter);
}

function parsed(text: string): ASTNode {
  for (let left = MAX_LEADING_DOTS; ; left--) {
    try {
      return parser().parse(text).ast;
    } catch (error) {
      const at = (error as { node?: { pos?: number } }).node?.pos;
      const isLeadingDot = at !== undefined && LEADING_DOT.test(text.slice(at, at + 2));
      if (left === 0 || !isLeadingDot || (error as { code?: string }).code !== 'unexpected_token')
        throw refusal(error, at);
      const inPlace = /\d/.test(text[at + 1]!) ? '0.' : ' ';
      text = `${text.slice(0, at)}${inPlace}${text.slice(at + 1)}`;
    }
  }
}

function refusal(error: unknown, at: number | undefined): Error {
  // A RangeError: too many signs in a row.
  const reason = error instanceof RangeError ? 'it is nested too deeply' : messageOf(error).split('\n')[0]!.trimEnd();
  return invalid(`not an expression: ${reason}${at === undefined ? '' : ` (at character ${at + 1})`}`);
}

let loaded: Cel.Environment | undefined;

/** Loads the parser at the first expression. */
function parser(): Cel.Environment {
  if (loaded === undefined) {
    const { Environment } = createRequire(import.meta.url)('@marcbachmann/cel-js') as typeof Cel;
    loaded = new Environment({ limits: { maxListElements: 10_000, maxMapEntries: 10_000 } });
  }
  return loaded;
}

function convert(node: ASTNode, depth: number, counter: PartCounter): Expression {
  counter.add(depth);
  const inner = (child: ASTNode) => convert(child, depth + 1, counter);
  switch (node.op) {
    case 'value':
      return { kind: 'constant', value: constantOf(node.args, node.input.slice(node.start, node.end)) };
    case 'id':
      return { kind: 'variable', name: node.args };
    case '.':
      return { kind: 'select', operand: inner(node.args[0]), field: byteText(node.args[1]), isTest: false };
    case '[]':
      return call('_[_]', node.args.map(inner));
    case 'list':
      return { kind: 'list', elements: node.args.map(inner) };
    case 'map':
      return { kind: 'map', entries: node.args.map(([key, value]) => [inner(key), inner(value)]) };
    case '?:':
      return call('_?_:_', node.args.map(inner));
    case '&&':
    case '||':
      return call(`_${node.op}_`, operandsOf(node, node.op).map(inner));
    case '!_':
      return call('!_', [inner(node.args)]);
    case '-_':
      return negation(node.args, inner);
    case 'call':
      return node.args[0] === 'has' ? presence(node.args[1], inner) : call(node.args[0], node.args[1].map(inner));
    case 'rcall': {
      const [name, receiver, args] = node.args;
      if (MACROS.has(name)) throw invalid(`the macro ${name}() is not available here, as in Envoy`);
      return { kind: 'call', name, isMethod: true, args: [receiver, ...args].map(inner) };
    }
    default: {
      const name = BINARY.get(node.op);
      if (name === undefined) throw invalid(`the operator ${node.op} is not available here`);
      return call(name, (node.args as readonly ASTNode[]).map(inner));
    }
  }
}

function call(name: string, args: readonly Expression[]): Expression {
  return { kind: 'call', name, isMethod: false, args };
}

/** Returns the operands of a chain of one operator, which would otherwise be as deep as it is long. */
function operandsOf(node: ASTNode, operator: '&&' | '||'): ASTNode[] {
  const operands: ASTNode[] = [];
  let left = node;
  while (left.op === operator) {
    operands.push(left.args[1]);
    left = left.args[0];
  }
  operands.push(left);
  return operands.reverse();
}

/** A sign belongs to the number after it: the least int has no positive counterpart. */
function negation(operand: ASTNode, inner: (child: ASTNode) => Expression): Expression {
  if (operand.op === 'value' && (typeof operand.args === 'bigint' || typeof operand.args === 'number')) {
    if (operand.args === MAX_INT + 1n) return { kind: 'constant', value: -operand.args };
    const { value } = inner(operand) as Extract<Expression, { kind: 'constant' }>;
    return { kind: 'constant', value: -(value as bigint) };
  }
  return call('-_', [inner(operand)]);
}

function presence(args: readonly ASTNode[], inner: (child: ASTNode) => Expression): Expression {
  const field = args.length === 1 ? inner(args[0]!) : undefined;
  if (field?.kind !== 'select') throw invalid('has() takes one field selection, such as a.b');
  return { ...field, isTest: true };
}

function constantOf(value: unknown, source: string): CelValue {
  if (typeof value === 'string') return byteText(value);
  if (typeof value === 'bigint') {
    if (value > MAX_INT) throw invalid(`invalid int literal ${source}`);
    return value;
  }
  if (value instanceof Uint8Array && /[^\x00-\x7f]/.test(source))
    throw invalid(`a bytes literal may hold ASCII only: write ${source} with \\x escapes`);
  if (value === null || typeof value === 'number' || typeof value === 'boolean' || value instanceof Uint8Array)
    return value;
  return new CelUint((value as { value: bigint }).value);
}
