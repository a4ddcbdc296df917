// The attributes of a stream that the processor gets with the first question about a message (request_attributes,
// response_attributes): values of expressions, by their text.

import type { Json, Struct } from '../../../../config/generated/api.js';
import { expressionOfText, type HeaderBlock, type StreamExpression, type StreamInfo } from '../../../sdk.js';

interface NamedExpression {
  readonly text: string;
  readonly expression: StreamExpression;
}

export class AttributeList {
  readonly #attributes: readonly NamedExpression[];

  /** Throws a BatonError if a text is not an expression. */
  constructor(texts: readonly string[]) {
    this.#attributes = texts.map((text) => ({ text, expression: expressionOfText(text) }));
  }

  /**
   * Returns the values that the stream has; undefined: none is configured. `response`: the head of the response, which the stream itself
   * shows only when it has passed all filters.
   */
  read(info: StreamInfo, response: HeaderBlock | undefined): Struct | undefined {
    if (this.#attributes.length === 0) return undefined;
    if (response === undefined) return this.#read(info);
    const { responseCode, responseHeaders } = info;
    info.responseCode = response.status;
    info.responseHeaders = response;
    try {
      return this.#read(info);
    } finally {
      info.responseCode = responseCode;
      info.responseHeaders = responseHeaders;
    }
  }

  #read(info: StreamInfo): Struct {
    const struct: Record<string, Json> = {};
    for (const { expression, text } of this.#attributes) {
      const value = jsonOf(expression.evaluate(info));
      if (value !== undefined) struct[text] = value;
    }
    return struct;
  }
}

/** As in Envoy, values without a form in JSON are left out. */
function jsonOf(value: unknown): Json | undefined {
  switch (typeof value) {
    case 'string':
      return Buffer.from(value, 'latin1').toString('utf8');
    case 'boolean':
    case 'number':
      return value;
    case 'bigint':
      return Number(value);
    default:
      if (value === null) return null;
      // An unsigned number.
      return typeof (value as { value?: unknown } | undefined)?.value === 'bigint'
        ? Number((value as { value: bigint }).value)
        : undefined;
  }
}
