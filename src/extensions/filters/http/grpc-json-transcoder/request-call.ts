// Finds the gRPC method of a request, and what its path and query say about the message.

import type { FieldDescriptor } from '../../../protobuf/types.js';
import { BindingTree } from './bindings.js';
import { type BoundMethod, resolveFields } from './method-table.js';
import type { PathVariable } from './path-template.js';
import type { TranscoderRules } from './transcoder-rules.js';
import { unescapeText } from './unescape.js';

export interface RequestCall {
  readonly bound: BoundMethod;
  readonly bindings: BindingTree;
  /** Query parameters that are not fields, by name. */
  readonly unknown: ReadonlyMap<string, readonly string[]>;
}

/** A request that is refused, or passes as it is. */
export interface NoCall {
  readonly status: 400 | 404;
  /** As texts of heads, with one character a byte. */
  readonly message: string;
  readonly isRefused: boolean;
}

/** `path`: with the query. */
export function findCall(rules: TranscoderRules, method: string, path: string): RequestCall | NoCall {
  const mark = path.indexOf('?');
  const place = mark < 0 ? path : path.slice(0, mark);
  const query = mark < 0 ? '' : path.slice(mark + 1);
  const { segments, verb } = rules.methods.split(place);
  const bound = rules.methods.find(method, segments, verb);
  if (bound === undefined)
    return { status: 404, message: `Could not resolve ${place} to a method.`, isRefused: rules.refusesUnknownMethods };
  const collector = new Collector(rules, bound);
  for (const variable of bound.variables) collector.add(variable.fieldPath, variableText(variable, segments, rules));
  addQuery(collector, query, rules);
  const { error: message, bindings, unknown } = collector;
  if (message !== undefined) return { status: 400, message, isRefused: rules.refusesUnknownParameters };
  return { bound, bindings, unknown };
}

class Collector {
  readonly #rules: TranscoderRules;
  readonly #bound: BoundMethod;
  readonly bindings = new BindingTree();
  readonly unknown = new Map<string, string[]>();
  error: string | undefined;

  constructor(rules: TranscoderRules, bound: BoundMethod) {
    this.#rules = rules;
    this.#bound = bound;
  }

  add(names: readonly string[], text: string): void {
    if (this.error !== undefined) return;
    const fields = resolveFields(this.#bound.method.input, names);
    if (typeof fields !== 'string') {
      if (!this.#isInHttpBody(fields)) this.bindings.add(fields, text);
      return;
    }
    const { capturesUnknownParameters, ignoresUnknownParameters } = this.#rules;
    if (capturesUnknownParameters) this.#capture(names.join('.'), text);
    else if (!ignoresUnknownParameters) this.error = fields;
  }

  /** The content of an HTTP body cannot come from parameters. */
  #isInHttpBody(fields: readonly FieldDescriptor[]): boolean {
    const { takesHttpBody, bodyPath } = this.#bound;
    return takesHttpBody && bodyPath.every((field, index) => fields[index] === field);
  }

  #capture(name: string, text: string): void {
    const texts = this.unknown.get(name);
    if (texts === undefined) this.unknown.set(name, [text]);
    else texts.push(text);
  }
}

function variableText(variable: PathVariable, segments: readonly string[], { kept }: TranscoderRules): string {
  const { start, isEndFromLast, isMultiple } = variable;
  const end = isEndFromLast ? segments.length - variable.end : variable.end;
  return segments
    .slice(start, end)
    .map((segment) => unescapeText(segment, isMultiple ? kept : 'none'))
    .join('/');
}

function addQuery(collector: Collector, query: string, rules: TranscoderRules): void {
  if (query === '') return;
  for (const parameter of query.split('&')) {
    const equals = parameter.indexOf('=');
    if (equals <= 0) continue;
    const name = unescapeText(parameter.slice(0, equals), 'none');
    if (rules.ignoredParameters.has(name)) continue;
    let text = parameter.slice(equals + 1);
    if (rules.decodesPlus) text = text.replaceAll('+', ' ');
    collector.add(name.split('.'), unescapeText(text, 'none'));
  }
}
