// query_parameter_mutations: changes to the query of a request. As in Envoy, parameters are then sorted by their names, and each has a "=".

import type { KeyValueMutation } from '../../../../config/generated/api.js';
import {
  BatonError,
  buildEach,
  byteText,
  compileFormat,
  type Format,
  type HeaderBlock,
  type StreamInfo,
  withinPlace,
} from '../../../sdk.js';

type Action = NonNullable<NonNullable<KeyValueMutation['append']>['action']>;

interface Mutation {
  /** Decoded, as the parameters of a request are compared. */
  readonly name: string;
  /** As it is written. */
  readonly key: string;
  /** Undefined: the parameters of this name are removed. */
  readonly value: Format | undefined;
  readonly action: Action;
}

/** Parameters as they are written, `name=value`, by their decoded names. */
type Parameters = Map<string, string[]>;

export class QueryMutations {
  readonly #mutations: readonly Mutation[];

  constructor(mutations: readonly Mutation[]) {
    this.#mutations = mutations;
  }

  /** Changes the query of a path. Other targets (`*`, and that of a CONNECT) have none. */
  apply(headers: HeaderBlock, info: StreamInfo): void {
    const path = headers.pathText();
    if (!path.startsWith('/')) return;
    const start = path.indexOf('?');
    const parameters = parse(start < 0 ? '' : path.slice(start + 1));
    for (const mutation of this.#mutations) change(parameters, mutation, info);
    headers.setPath((start < 0 ? path : path.slice(0, start)) + queryText(parameters));
  }
}

/** Returns undefined without mutations. Throws BatonErrors; `where` is the path of the list. */
export function compileQueryMutations(
  mutations: readonly KeyValueMutation[] | undefined,
  where: string,
): QueryMutations | undefined {
  if (mutations === undefined || mutations.length === 0) return undefined;
  return new QueryMutations(buildEach(mutations, (each, index) => compile(each, `${where}[${index}]`)));
}

function compile({ append, remove = '' }: KeyValueMutation, where: string): Mutation {
  if (append === undefined && remove === '') throw mistake("One of 'append'/'remove' must be specified.", where);
  if (append === undefined) return { name: byteText(remove), key: '', value: undefined, action: 'OVERWRITE_IF_EXISTS' };
  if (remove !== '') throw mistake("Only one of 'append'/'remove can be specified.", where);
  const { record, action = 'APPEND_IF_EXISTS_OR_ADD' } = append;
  if (record === undefined) throw mistake('No record specified for append mutation.', `${where}.append`);
  const { key = '', value } = record;
  const at = `${where}.append.record`;
  if (!/^[!"$%'-<>-~]+$/.test(key))
    throw mistake(`'${key}' cannot be the name of a parameter: it must be percent-encoded`, `${at}.key`);
  if (typeof value !== 'string') throw mistake('Only string value is allowed for record value.', at);
  const format = withinPlace(`${at}.value`, () => compileFormat(value, { omitEmptyValues: true }));
  return { name: decoded(key), key, value: format, action };
}

function change(parameters: Parameters, { action, key, name, value }: Mutation, info: StreamInfo): void {
  if (value === undefined) {
    parameters.delete(name);
    return;
  }
  const known = parameters.get(name);
  if (action === 'ADD_IF_ABSENT' ? known !== undefined : action === 'OVERWRITE_IF_EXISTS' && known === undefined)
    return;
  const text = `${key}=${encoded(value.text(info))}`;
  if (known === undefined || action.startsWith('OVERWRITE')) parameters.set(name, [text]);
  else known.push(text);
}

function parse(query: string): Parameters {
  const parameters: Parameters = new Map();
  if (query === '') return parameters;
  for (const part of query.split('&')) {
    const equals = part.indexOf('=');
    const name = decoded(equals < 0 ? part : part.slice(0, equals));
    const text = equals < 0 ? `${part}=` : part;
    const known = parameters.get(name);
    if (known === undefined) parameters.set(name, [text]);
    else known.push(text);
  }
  return parameters;
}

function queryText(parameters: Parameters): string {
  const names = [...parameters.keys()].sort((a, b) => (a < b ? -1 : 1));
  return names.length === 0 ? '' : `?${names.flatMap((name) => parameters.get(name)!).join('&')}`;
}

/** Invalid escapes stay as they are. */
function decoded(text: string): string {
  return text.replace(/%[\da-f]{2}/gi, (found) => String.fromCharCode(Number.parseInt(found.slice(1), 16)));
}

/** As in Envoy, of all but letters, digits and `*-._`. */
function encoded(text: string): string {
  return text.replace(
    /[^A-Za-z0-9*\-._]/g,
    (found) => `%${found.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0')}`,
  );
}

function mistake(message: string, where: string): BatonError {
  return new BatonError('CONFIG_INVALID', message, { where });
}
