// The body that an answer of Baton's own gets by a format (body_format, body_format_override), and what it is.

import type { Format } from '../../access-log/formats/format.js';
import { compileSubstitutionFormat } from '../../access-log/formats/substitution-format.js';
import { LogBuffer } from '../../access-log/log-buffer.js';
import { within } from '../../access-log/operators/format-error.js';
import type { HeaderNeeds } from '../../access-log/operators/operator.js';
import type { ReplyBody } from '../../access-log/operators/reply-body-operator.js';
import type { StreamInfo } from '../../access-log/stream/stream-info.js';
import { headerKey } from '../../common/text/header-names.js';
import type { SubstitutionFormatString } from '../../config/generated/api.js';
import { HeaderLine } from '../headers/header-line.js';

export const CONTENT_TYPE = headerKey('content-type');
/** Of bodies, as they are configured and as they are sent: a format repeats what a client says as often as it names it. */
export const MOST_BODY_BYTES = 1024 * 1024;

const JSON_TYPE = 'application/json';
/** What a thread keeps for the next answer. */
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

  /** @throws BatonError for what is wrong with it, Mistakes for several; `where` is its path in the configuration. */
  static of(config: SubstitutionFormatString, where: string): ReplyFormat {
    return within(where, () => new ReplyFormat(config));
  }

  /**
   * The body for an answer that says `text`; undefined: it would be too long. `isInHeader`: it is for a grpc-message, where as in Envoy
   * a line of JSON does not end.
   */
  bytes(info: StreamInfo, text: string | Uint8Array, isInHeader: boolean): Uint8Array | undefined {
    const out = scratch;
    out.length = 0;
    this.#body.text = text;
    try {
      this.#format.write(info, out);
      if (out.length > MOST_BODY_BYTES) return undefined;
      if (isInHeader && this.#isJson && out.bytes[out.length - 1] === NEWLINE && out.length > 0) out.length--;
      return out.bytes.slice(0, out.length);
    } finally {
      this.#body.text = '';
      if (out.bytes.length > KEPT_BYTES) scratch = new LogBuffer(KEPT_BYTES);
    }
  }
}
