// LocalResponsePolicy, compiled: the response in the place of another one.

import type { LocalResponsePolicy } from '../../../../config/generated/api.js';
import {
  BatonError,
  compileHeaderMutations,
  type HeaderBlock,
  type HeaderMutations,
  type LocalReply,
  ReplyFormat,
  ResponseFlag,
  readDataSource,
  type StreamInfo,
} from '../../../sdk.js';

/** Bytes. A longer one is refused, as for local replies. */
const MAX_BODY = 1024 * 1024;

export class LocalPolicy {
  /** Undefined: that of the replaced response. */
  readonly #status: number | undefined;
  /** Undefined: those of the replaced response. */
  readonly #details: string | undefined;
  readonly #body: string | Uint8Array;
  readonly #format: ReplyFormat | undefined;
  readonly #headers: HeaderMutations | undefined;

  /** Throws a BatonError for an invalid policy; `where`: its path. */
  constructor(config: LocalResponsePolicy, where: string) {
    const { body, body_format: format, response_headers_to_add: toAdd } = config;
    this.#status = config.status_code;
    this.#details = config.preserve_response_code_details === true ? undefined : (config.response_code_details ?? '');
    this.#body = body === undefined ? '' : readDataSource(body, `${where}.body`);
    if (this.#body.length > MAX_BODY)
      throw new BatonError('CONFIG_INVALID', `the body is longer than ${MAX_BODY} bytes`, { where: `${where}.body` });
    this.#format = format && ReplyFormat.of(format, `${where}.body_format`);
    const path = (_list: 'to_add' | 'to_remove', index: number) => `${where}.response_headers_to_add[${index}]`;
    this.#headers = toAdd && compileHeaderMutations([{ toRemove: undefined, toAdd, where: path }]);
  }

  /**
   * Returns the reply in the place of a response with this status, which `info` describes; undefined for a 101, which no reply can have. A
   * formatted body that is too long is left out.
   */
  reply(info: StreamInfo, status: number): LocalReply | undefined {
    if (this.#status === undefined && status < 200) return undefined;
    return {
      status: this.#status ?? status,
      body: this.#format === undefined ? this.#body : (this.#format.bytes(info, this.#body, false) ?? ''),
      details: this.#details ?? info.responseCodeDetails,
      flags: ResponseFlag.None,
      editHeaders: this.#headers && headerEditor(this.#headers, info, status),
    };
  }
}

/** Returns the function that adds headers to the new head. As in Envoy, values read that head, and the status of the replaced response. */
function headerEditor(changes: HeaderMutations, info: StreamInfo, status: number): (headers: HeaderBlock) => void {
  return (headers) => {
    info.responseCode = status;
    info.responseHeaders = headers;
    changes.apply(headers, info);
  };
}
