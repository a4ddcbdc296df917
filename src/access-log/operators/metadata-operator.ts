// %METADATA(TYPE:NAMESPACE:KEY…)% and the operators for one type: values of metadata, as text or as JSON.

import type { Json, Metadata, Struct } from '../../config/generated/api.js';
import { escapeJson } from '../formats/json-escape.js';
import type { LogBuffer } from '../log-buffer.js';
import type { StreamInfo } from '../stream/stream-info.js';
import { operatorError } from './format-error.js';
import type { Operator } from './operator.js';
import { sortedJson } from './sorted-json.js';

/** Returns the structure of a namespace. */
type Find = (info: StreamInfo, namespace: string) => Struct | undefined;

function ofMetadata(get: (info: StreamInfo) => Metadata | undefined): Find {
  return (info, namespace) => {
    const namespaces = get(info)?.filter_metadata;
    return namespaces !== undefined && Object.hasOwn(namespaces, namespace) ? namespaces[namespace] : undefined;
  };
}

/** By TYPE. */
const SOURCES: ReadonlyMap<string, Find> = new Map<string, Find>([
  ['DYNAMIC', (info, namespace) => info.dynamicMetadata?.get(namespace)],
  ['CLUSTER', ofMetadata((info) => info.upstreamCluster?.metadata)],
  ['ROUTE', ofMetadata((info) => info.route?.metadata)],
  ['UPSTREAM_HOST', ofMetadata((info) => info.host?.metadata)],
  ['LISTENER', ofMetadata((info) => info.chain?.listenerMetadata)],
  ['LISTENER_FILTER_CHAIN', ofMetadata((info) => info.chain?.metadata)],
  ['VIRTUAL_HOST', ofMetadata((info) => info.route?.virtualHostMetadata)],
]);

/** Creates the operator for `TYPE:NAMESPACE:KEY…`. Throws a BatonError for an unknown type. */
export function metadataOperator(parameter: string, maxBytes: number | undefined): Operator {
  const [type = '', ...path] = parameter.split(':');
  const find = SOURCES.get(type);
  if (find === undefined)
    throw operatorError(`operator %METADATA% takes ${[...SOURCES.keys()].join(', ')}, not '${type}'`);
  return new MetadataOperator(find, path, maxBytes);
}

/** Creates the operator for `NAMESPACE:KEY…` in the metadata of one type. */
export function metadataOfType(type: string, parameter: string, maxBytes: number | undefined): Operator {
  return new MetadataOperator(SOURCES.get(type)!, parameter.split(':'), maxBytes);
}

/** Creates the operator for a path that begins with the namespace. */
export function metadataAt(type: string, path: readonly string[]): Operator {
  return new MetadataOperator(SOURCES.get(type)!, path, undefined);
}

class MetadataOperator implements Operator {
  readonly isNumber = false;
  readonly isFreeText = true;
  readonly #find: Find;
  readonly #namespace: string;
  readonly #path: readonly string[];
  readonly #maxBytes: number;
  /** The last structure or list and its JSON: it is the same for all streams of a route, host or cluster. */
  #last: Json | undefined;
  #lastJson = '';

  constructor(find: Find, [namespace = '', ...path]: readonly string[], maxBytes = Number.MAX_SAFE_INTEGER) {
    this.#find = find;
    this.#namespace = namespace;
    this.#path = path;
    this.#maxBytes = maxBytes;
  }

  write(info: StreamInfo, out: LogBuffer): boolean {
    const value = this.#value(info);
    if (value === undefined || value === null) return false;
    const start = out.length;
    out.text(typeof value === 'string' ? value : this.#json(value));
    if (out.length - start > this.#maxBytes) out.length = start + this.#maxBytes;
    return true;
  }

  /** As in Envoy, only strings are truncated. */
  writeJson(info: StreamInfo, out: LogBuffer): boolean {
    const value = this.#value(info);
    if (value === undefined || value === null) return false;
    if (typeof value !== 'string') {
      out.text(this.#json(value));
      return true;
    }
    out.byte(QUOTE);
    const start = out.length;
    out.text(value);
    if (out.length - start > this.#maxBytes) out.length = start + this.#maxBytes;
    escapeJson(out, start);
    out.byte(QUOTE);
    return true;
  }

  #value(info: StreamInfo): Json | undefined {
    let value: Json | undefined = this.#find(info, this.#namespace) as Json | undefined;
    for (const key of this.#path) {
      if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
      value = Object.hasOwn(value, key) ? (value as Struct)[key] : undefined;
    }
    return value;
  }

  #json(value: Json): string {
    if (typeof value !== 'object') return JSON.stringify(value);
    if (value !== this.#last) {
      this.#last = value;
      this.#lastJson = sortedJson(value);
    }
    return this.#lastJson;
  }
}

const QUOTE = 34;
