// %FILTER_STATE(KEY:F:NAME):Z% and %UPSTREAM_FILTER_STATE(…)%: objects that filters have set.

import { escapeJson } from '../formats/json-escape.js';
import type { LogBuffer } from '../log-buffer.js';
import type { FilterStateObject } from '../stream/filter-state.js';
import type { StreamInfo } from '../stream/stream-info.js';
import { operatorError } from './format-error.js';
import type { Operator } from './operator.js';

const FORMS = ['PLAIN', 'TYPED', 'FIELD'];

/** `isUpstream`: only objects that are shared with the connection to the host. Throws a BatonError for an invalid parameter. */
export function filterStateOperator(
  name: string,
  parameter: string,
  maxBytes: number | undefined,
  isUpstream: boolean,
): Operator {
  const [key = '', form = '', field = ''] = splitAtMost(parameter);
  if (key === '') throw operatorError(`operator %${name}% needs a key`);
  if (form !== '' && !FORMS.includes(form))
    throw operatorError(`operator %${name}% takes ${FORMS.join(', ')}, not '${form}'`);
  if ((form === 'FIELD') !== (field !== ''))
    throw operatorError(`operator %${name}% takes a field name with FIELD only`);
  if (form === 'FIELD') return new FieldOperator(key, field, maxBytes, isUpstream);
  return new FilterStateOperator(key, form === 'PLAIN', maxBytes, isUpstream);
}

function splitAtMost(parameter: string): string[] {
  const [key = '', form = '', ...rest] = parameter.split(':');
  return [key, form, rest.join(':')];
}

/** A field of an object that has fields. */
class FieldOperator implements Operator {
  readonly isNumber = false;
  readonly isFreeText = true;
  readonly #key: string;
  readonly #field: string;
  readonly #maxBytes: number;
  readonly #isUpstream: boolean;

  constructor(key: string, field: string, maxBytes = Number.MAX_SAFE_INTEGER, isUpstream = false) {
    this.#key = key;
    this.#field = field;
    this.#maxBytes = maxBytes;
    this.#isUpstream = isUpstream;
  }

  write(info: StreamInfo, out: LogBuffer): boolean {
    const fields = objectOf(info, this.#key, this.#isUpstream)?.fields;
    if (fields === undefined || !Object.hasOwn(fields, this.#field)) return false;
    out.latin1Text(String(fields[this.#field]).slice(0, this.#maxBytes));
    return true;
  }
}

function objectOf(info: StreamInfo, key: string, isUpstream: boolean): FilterStateObject | undefined {
  const object = info.filterState?.get(key);
  // A connection takes the objects over when the request gets it.
  if (isUpstream && (object?.sharing === 'NONE' || info.upstreamConnectionId === 0)) return undefined;
  return object;
}

class FilterStateOperator implements Operator {
  readonly isNumber = false;
  readonly isFreeText = true;
  readonly #key: string;
  /** The string itself; otherwise it is JSON. */
  readonly #isPlain: boolean;
  readonly #maxBytes: number;
  readonly #isUpstream: boolean;

  constructor(key: string, isPlain: boolean, maxBytes = Number.MAX_SAFE_INTEGER, isUpstream = false) {
    this.#key = key;
    this.#isPlain = isPlain;
    this.#maxBytes = maxBytes;
    this.#isUpstream = isUpstream;
  }

  write(info: StreamInfo, out: LogBuffer): boolean {
    const object = this.#object(info);
    if (object === undefined || (this.#isPlain && !hasText(object))) return false;
    const start = out.length;
    if (this.#isPlain) out.latin1Text(object.text);
    else writeTyped(object, out);
    if (out.length - start > this.#maxBytes) out.length = start + this.#maxBytes;
    return true;
  }

  /** As in Envoy, only the plain form is truncated. */
  writeJson(info: StreamInfo, out: LogBuffer): boolean {
    const object = this.#object(info);
    if (object === undefined || (this.#isPlain && !hasText(object))) return false;
    if (this.#isPlain) writeQuoted(object.text, out, this.#maxBytes);
    else writeTyped(object, out);
    return true;
  }

  #object(info: StreamInfo): FilterStateObject | undefined {
    return objectOf(info, this.#key, this.#isUpstream);
  }
}

/** As in Envoy, an object that is a message has no text. */
function hasText({ json, text }: FilterStateObject): boolean {
  return text !== '' || json === undefined;
}

function writeTyped({ json, text }: FilterStateObject, out: LogBuffer): void {
  if (json === undefined) writeQuoted(text, out, Number.MAX_SAFE_INTEGER);
  else out.latin1Text(json);
}

function writeQuoted(text: string, out: LogBuffer, maxBytes: number): void {
  out.byte(QUOTE);
  const start = out.length;
  out.latin1Text(text);
  if (out.length - start > maxBytes) out.length = start + maxBytes;
  escapeJson(out, start);
  out.byte(QUOTE);
}

const QUOTE = 34;
