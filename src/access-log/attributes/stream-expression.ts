// An expression about streams, compiled: of access log filters, formats, matchers, policies and descriptors.

import type { Evaluate } from '../../cel/compile.js';
import type { Expression } from '../../cel/expression.js';
import { expressionOfMessage } from '../../cel/from-message.js';
import { functionsOf } from '../../cel/functions/functions.js';
import { parseExpression } from '../../cel/parse.js';
import type { CelExpression, CelExpressionConfig, ExprExpr } from '../../config/generated/api.js';
import { type HeaderNeeds, noHeaderNeeds } from '../operators/operator.js';
import type { StreamInfo } from '../stream/stream-info.js';
import { compileStreamExpression } from './attributes.js';

export interface StreamExpression {
  /** The heads that it reads: they must be kept for it. */
  readonly needs: HeaderNeeds;
  /** Returns the value for a stream in its current state; undefined: an error, for example because an attribute is missing. */
  readonly evaluate: Evaluate<StreamInfo>;
}

/** Compiles a text. Throws a BatonError, without a path, if it is invalid. */
export function expressionOfText(text: string, config?: CelExpressionConfig): StreamExpression {
  return compiled(parseExpression(text), config);
}

/** Compiles an expression that is a message. Throws a BatonError, without a path, if it is invalid. */
export function expressionOfExpr(message: ExprExpr | undefined, config?: CelExpressionConfig): StreamExpression {
  return compiled(expressionOfMessage(message), config);
}

/** Compiles the expression of a matcher, a message of one of several types. Throws a BatonError, without a path, if it is invalid. */
export function expressionOfMatcher(config: CelExpression): StreamExpression {
  const { cel_expr_checked, cel_expr_parsed, checked_expr, parsed_expr } = config;
  return compiled(expressionOfMessage((cel_expr_parsed ?? cel_expr_checked ?? parsed_expr ?? checked_expr)?.expr));
}

function compiled(expression: Expression, config?: CelExpressionConfig): StreamExpression {
  const needs = noHeaderNeeds();
  addNeeds(expression, needs);
  return { needs, evaluate: compileStreamExpression(expression, functionsOf(config)) };
}

/** Any name will do: it causes the head to be kept. */
function addNeeds(expression: Expression, needs: HeaderNeeds): void {
  switch (expression.kind) {
    case 'variable':
      if (expression.name === 'request') needs.request.add(':path');
      if (expression.name !== 'response') return;
      needs.response.add('date');
      needs.trailers.add('grpc-status');
      return;
    case 'select':
      return addNeeds(expression.operand, needs);
    case 'call':
      for (const each of expression.args) addNeeds(each, needs);
      return;
    case 'list':
      for (const each of expression.elements) addNeeds(each, needs);
      return;
    case 'map':
      for (const entry of expression.entries) for (const each of entry) addNeeds(each, needs);
  }
}
