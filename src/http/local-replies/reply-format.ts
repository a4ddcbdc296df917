// A body_format or body_format_override, compiled: makes the body and the content type of a local reply.

import type { Format } from '../../access-log/formats/format.js';
import { compileSubstitutionFormat } from '../../access-log/formats/substitution-format.js';
import { LogBuffer } from '../../access-log/log-buffer.js';
import { withinPlace } from '../../access-log/operators/format-error.js';
import type { HeaderNeeds } from '../../access-log/operators/operator.js';
import type { ReplyBody } from '../../access-log/operators/reply-body-operator.js';
import type { StreamInfo } from '../../access-log/stream/stream-info.js';
import { headerKey } from '../../common/text/header-names.js';
import type { SubstitutionFormatString } from '../../config/generated/api.js';
import { HeaderLine } from '../headers/header-line.js';

export const CONTENT_TYPE = headerKey('content-type');
/** Limit for configured bodies and for formatted ones: a format may repeat client input many times. */
export const MAX_BODY_BYTES = 1024 * 1024;

const JSON_TYPE = 'application/json';
/** Size of the buffer that a thread keeps for the next reply. */
const KEPT_BYTES = 16 * 1024;
const NEWLINE = 10;

let scratch = new LogBuffer(KEPT_BYTES);

export class ReplyFormat {
  readonly needs: HeaderNeeds;
  readonly contentType: HeaderLine;
  readonly #format: Format;
  readonly #body: ReplyBody = { text: '' };
  readonly #isJson: boolean;

  private constructor(config: SubstitutionFormatString) {
    const type = config.content_type || (config.json_format === undefined ? 'text/plain' : JSON_TYPE);
    this.#format = compileSubstitutionFormat(config, this.#body);
    this.needs = this.#format.needs;
    this.contentType = new HeaderLine(CONTENT_TYPE, type);
    this.#isJson = type === JSON_TYPE;
  }

  /** @throws BatonError for an invalid format, Mistakes for several errors; `where` is its path in the configuration. */
  static of(config: SubstitutionFormatString, where: string): ReplyFormat {
    return withinPlace(where, () => new ReplyFormat(config));
  }

  /**
   * Returns the body for a reply with the original body `text`; undefined if it would be too long. `isInHeader`: it is for a grpc-message,
   * where as in Envoy JSON has no final newline.
   */
  bytes(info: StreamInfo, text: string | Uint8Array, isInHeader: boolean): Uint8Array | undefined {
    const out = scratch;
    out.length = 0;
    this.#body.text = text;
    try {
      this.#format.write(info, out);
      if (out.length > MAX_BODY_BYTES) return undefined;
      if (isInHeader && this.#isJson && out.bytes[out.length - 1] === NEWLINE && out.length > 0) out.length--;
      return out.bytes.slice(0, out.length);
    } finally {
      this.#body.text = '';
      if (out.bytes.length > KEPT_BYTES) scratch = new LogBuffer(KEPT_BYTES);
    }
  }
}
