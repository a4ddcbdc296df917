// Turns an expression that a configuration holds as a message (google.api.expr.v1alpha1.Expr, cel.expr.Expr) into an Expression.

import { byteText } from '../common/text/byte-text.js';
import type { Constant, Expr, ExprConstant, ExprExpr } from '../config/generated/api.js';
import { type Expression, invalid, PartCounter } from './expression.js';
import { parseDuration, parseTimestamp } from './functions/time-text.js';
import { CelUint, type CelValue } from './values.js';

type Message = Expr | ExprExpr;

/** Converts a message. Throws a BatonError for one that is incomplete, or that Envoy does not evaluate either. */
export function expressionOfMessage(message: Message | undefined): Expression {
  return convert(message, 0, new PartCounter());
}

function convert(message: Message | undefined, depth: number, counter: PartCounter): Expression {
  counter.add(depth);
  const inner = (child: Message | undefined) => convert(child, depth + 1, counter);
  const { call_expr, const_expr, ident_expr, list_expr, select_expr, struct_expr } = message ?? {};
  if (const_expr !== undefined) return { kind: 'constant', value: constantOf(const_expr) };
  if (ident_expr !== undefined) return { kind: 'variable', name: absolute(ident_expr.name) };
  if (select_expr !== undefined) {
    const { field = '', operand, test_only: isTest = false } = select_expr;
    return { kind: 'select', operand: inner(operand), field: byteText(field), isTest };
  }
  if (call_expr !== undefined) {
    const { args = [], function: name, target } = call_expr;
    const all = target === undefined ? args : [target, ...args];
    return { kind: 'call', name: absolute(name), isMethod: target !== undefined, args: all.map(inner) };
  }
  if (list_expr !== undefined) return { kind: 'list', elements: (list_expr.elements ?? []).map(inner) };
  if (struct_expr !== undefined) {
    const { entries = [], message_name: name = '' } = struct_expr;
    if (name !== '') throw invalid(`messages such as ${name} cannot be made in expressions`);
    return { kind: 'map', entries: entries.map(({ map_key, value }) => [inner(map_key), inner(value)]) };
  }
  if (message?.comprehension_expr !== undefined) throw invalid('comprehensions are not available here, as in Envoy');
  throw invalid('the expression has an empty part');
}

/** Returns a name without the dot that makes it absolute: names are in no container. */
function absolute(name = ''): string {
  return name.startsWith('.') ? name.slice(1) : name;
}

function constantOf(constant: Constant | ExprConstant): CelValue {
  if (constant.bool_value !== undefined) return constant.bool_value;
  if (constant.int64_value !== undefined) return BigInt(constant.int64_value);
  if (constant.uint64_value !== undefined) return new CelUint(BigInt(constant.uint64_value));
  if (constant.double_value !== undefined) return Number(constant.double_value);
  if (constant.string_value !== undefined) return byteText(constant.string_value);
  if (constant.bytes_value !== undefined) return new Uint8Array(Buffer.from(constant.bytes_value, 'base64'));
  if (constant.null_value !== undefined) return null;
  const time =
    constant.duration_value !== undefined
      ? parseDuration(String(constant.duration_value))
      : constant.timestamp_value !== undefined
        ? parseTimestamp(String(constant.timestamp_value))
        : undefined;
  if (time === undefined) throw invalid('the expression has a constant without a valid value');
  return time;
}
