// The methods of a configuration's services, by the paths that are bound to them.

import type { FieldDescriptor, MessageDescriptor, MethodDescriptor, TypeRegistry } from '../../../protobuf/types.js';
import { WireError } from '../../../protobuf/wire-reader.js';
import { type HttpBinding, readHttpRule } from './http-rule.js';
import { type PathTemplate, type PathVariable, parsePathTemplate } from './path-template.js';
import { PathTree } from './path-tree.js';

/** A mistake in a descriptor set or a configuration. */
export class RuleError extends Error {}

/** A method with one of its bindings. */
export interface BoundMethod {
  /** The path of the gRPC request. */
  readonly path: string;
  readonly method: MethodDescriptor;
  readonly variables: readonly PathVariable[];
  /** The field that the body is; empty: the whole message. */
  readonly bodyPath: readonly FieldDescriptor[];
  /** The body is that of a google.api.HttpBody. */
  readonly takesHttpBody: boolean;
  /** The field that has the google.api.HttpBody of a response; empty: the whole message. */
  readonly responseBodyPath: readonly FieldDescriptor[];
  readonly returnsHttpBody: boolean;
}

const HTTP_BODY = 'google.api.HttpBody';
/** Names in the path of a field: each is a message within another. */
const MAX_PATH = 100;

/** @throws RuleError */
export function bindMethods(
  registry: TypeRegistry,
  services: readonly string[],
  mapsAll: boolean,
  takesAllVerbs: boolean,
): PathTree<BoundMethod> {
  const tree = new PathTree<BoundMethod>(takesAllVerbs);
  for (const name of services) {
    const service = registry.services.get(name);
    if (service === undefined) throw new RuleError(`the descriptor set has no service '${name}'`);
    for (const method of service.methods) {
      const path = `/${name}/${method.name}`;
      try {
        for (const binding of bindingsOf(method, path, mapsAll)) addBinding(tree, path, method, binding);
      } catch (error) {
        if (!(error instanceof RuleError || error instanceof WireError)) throw error;
        throw new RuleError(`the method ${name}.${method.name} cannot be bound: ${error.message}`);
      }
    }
  }
  return tree;
}

function bindingsOf({ httpRule }: MethodDescriptor, path: string, mapsAll: boolean): HttpBinding[] {
  if (httpRule !== undefined) return readHttpRule(httpRule);
  return mapsAll ? [{ method: 'POST', template: path, body: '*', responseBody: '' }] : [];
}

function addBinding(
  tree: PathTree<BoundMethod>,
  path: string,
  method: MethodDescriptor,
  { method: httpMethod, template: text, body, responseBody }: HttpBinding,
): void {
  const template: PathTemplate | undefined = parsePathTemplate(text);
  if (template === undefined) throw new RuleError(`'${text}' is not a path template`);
  const bodyPath = resolvePath(method.input, body);
  const responseBodyPath = resolvePath(method.output, responseBody);
  const returnsHttpBody = isHttpBody(method.output, responseBodyPath);
  if (responseBodyPath.length > 0 && !returnsHttpBody)
    throw new RuleError(`response_body is supported only for fields of ${HTTP_BODY}, as in Envoy`);
  tree.add(httpMethod, template, {
    path,
    method,
    variables: template.variables,
    bodyPath,
    takesHttpBody: isHttpBody(method.input, bodyPath),
    responseBodyPath,
    returnsHttpBody,
  });
}

function isHttpBody(message: MessageDescriptor, path: readonly FieldDescriptor[]): boolean {
  const type = path.length === 0 ? message : path.at(-1)!.message;
  return type?.name === HTTP_BODY;
}

function resolvePath(message: MessageDescriptor, path: string): FieldDescriptor[] {
  if (path === '' || path === '*') return [];
  const resolved = resolveFields(message, path.split('.'));
  if (typeof resolved === 'string') throw new RuleError(resolved);
  return resolved;
}

/** Returns the fields that a path of names leads through, or the text of Envoy's error. */
export function resolveFields(message: MessageDescriptor, names: readonly string[]): FieldDescriptor[] | string {
  if (names.length > MAX_PATH) return 'The field path is too long.';
  const fields: FieldDescriptor[] = [];
  let type = message;
  for (const [index, name] of names.entries()) {
    const field = type.byName.get(name);
    if (field === undefined) return `Could not find field "${name}" in the type "${type.name}".`;
    fields.push(field);
    if (index === names.length - 1) break;
    if (field.message === undefined)
      return `Encountered a non-leaf field "${name}" that is not a message while parsing a field path`;
    type = field.message;
  }
  return fields;
}
