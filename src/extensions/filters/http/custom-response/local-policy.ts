// LocalResponsePolicy, compiled: the response in the place of another one.

import type { LocalResponsePolicy } from '../../../../config/generated/api.js';
import {
  BatonError,
  compileHeaderMutations,
  type HeaderBlock,
  type HeaderMutations,
  ReplyFormat,
  readDataSource,
  type StreamInfo,
} from '../../../sdk.js';

/** Bytes. A longer one is refused, as for local replies. */
const MAX_BODY = 1024 * 1024;

export class LocalPolicy {
  /** Undefined: that of the replaced response. */
  readonly status: number | undefined;
  readonly details: string;
  readonly keepsDetails: boolean;
  readonly #body: string | Uint8Array;
  readonly #format: ReplyFormat | undefined;
  readonly #headers: HeaderMutations | undefined;

  /** Throws a BatonError for an invalid policy; `where`: its path. */
  constructor(config: LocalResponsePolicy, where: string) {
    const { body, body_format: format, response_headers_to_add: toAdd } = config;
    this.status = config.status_code;
    this.details = config.response_code_details ?? '';
    this.keepsDetails = config.preserve_response_code_details ?? false;
    this.#body = body === undefined ? '' : readDataSource(body);
    if (this.#body.length > MAX_BODY)
      throw new BatonError('CONFIG_INVALID', `the body is longer than ${MAX_BODY} bytes`, { where: `${where}.body` });
    this.#format = format && ReplyFormat.of(format, `${where}.body_format`);
    const path = (_list: 'to_add' | 'to_remove', index: number) => `${where}.response_headers_to_add[${index}]`;
    this.#headers = toAdd && compileHeaderMutations([{ toRemove: undefined, toAdd, where: path }]);
  }

  /** Returns the body in the place of a response, which `info` describes. A formatted body that is too long is left out. */
  body(info: StreamInfo): string | Uint8Array {
    return this.#format === undefined ? this.#body : (this.#format.bytes(info, this.#body, false) ?? '');
  }

  /** Returns the function that adds headers to the new head; undefined: there are none to add. */
  headerEditor(info: StreamInfo): ((headers: HeaderBlock) => void) | undefined {
    const changes = this.#headers;
    if (changes === undefined) return undefined;
    return (headers) => {
      // As in Envoy, values read the new head.
      info.responseHeaders = headers;
      changes.apply(headers, info);
    };
  }
}
