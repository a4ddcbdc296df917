// HttpConnectionManager.local_reply_config, compiled: rewrites local replies before filters see them.

import type { StreamInfo } from '../../access-log/stream/stream-info.js';
import { buildAll, buildEach } from '../../common/errors/errors.js';
import { headerKey } from '../../common/text/header-names.js';
import type { LocalReplyConfig } from '../../config/generated/api.js';
import type { HeaderBlock } from '../headers/header-block.js';
import { HeaderLine } from '../headers/header-line.js';
import type { HeaderMutations } from '../headers/header-mutations.js';
import type { LogFilterContext } from '../log-filters/log-filter.js';
import { CONTENT_TYPE, ReplyFormat } from './reply-format.js';
import { compileMapper, type ResponseMapper } from './response-mapper.js';

const CONTENT_LENGTH = headerKey('content-length');
const TEXT_PLAIN = new HeaderLine(CONTENT_TYPE, 'text/plain');
const NOTHING = new Uint8Array(0);

export class LocalReplyRules {
  /** Rules read the request head: it must be kept until the reply is made. */
  readonly readsRequest: boolean;
  readonly #mappers: readonly ResponseMapper[];
  readonly #format: ReplyFormat | undefined;

  private constructor(mappers: readonly ResponseMapper[], format: ReplyFormat | undefined) {
    const formats = [format, ...mappers.map((mapper) => mapper.format)];
    this.#mappers = mappers;
    this.#format = format;
    this.readsRequest =
      mappers.some(({ filter, headers }) => filter.needs.request.size > 0 || headers?.needsRequestHeaders) ||
      formats.some((each) => each !== undefined && each.needs.request.size > 0);
  }

  /**
   * Returns undefined if nothing is configured.
   * @throws BatonError for an invalid configuration, Mistakes for several errors
   */
  static of(
    config: LocalReplyConfig | undefined,
    context: Omit<LogFilterContext, 'recordType'>,
  ): LocalReplyRules | undefined {
    const { body_format: format, mappers = [] } = config ?? {};
    if (format === undefined && mappers.length === 0) return undefined;
    // No log record is being written when a mapper's filter is evaluated.
    const filterContext: LogFilterContext = { ...context, recordType: 'NotSet' };
    const { compiled, common } = buildAll({
      compiled: () => buildEach(mappers, (mapper, index) => compileMapper(mapper, `mappers[${index}]`, filterContext)),
      common: () => format && ReplyFormat.of(format, 'body_format'),
    });
    return new LocalReplyRules(compiled, common);
  }

  /**
   * Rewrites a local reply by the first matching mapper and the formats. As in Envoy, headers that the mapper adds see the original status,
   * and formats see the new one. Sets the reply's status and head in `info`.
   * @param body bytes, or ASCII text; the head has no content-length for it yet
   * @param isGrpc the body becomes a grpc-message
   * @returns the new body, whose content type is in the head
   */
  rewrite(headers: HeaderBlock, info: StreamInfo, body: string | Uint8Array, isGrpc: boolean): string | Uint8Array {
    info.responseCode = headers.status;
    info.responseHeaders = headers;
    const mapper = this.#mapperFor(info);
    let text = mapper?.body ?? body;
    const addsType = mapper?.headers !== undefined && this.#apply(mapper.headers, headers, info);
    if (mapper?.status !== undefined) {
      headers.setStatus(mapper.status);
      info.responseCode = mapper.status;
    }
    const format = mapper?.format ?? this.#format;
    const formatted = format?.bytes(info, text, isGrpc);
    const type = formatted === undefined ? TEXT_PLAIN : format!.contentType;
    text = formatted ?? text;
    if (isGrpc) return text;
    if (headers.status === 204 || headers.status === 304) text = NOTHING;
    if (text.length === 0) {
      headers.remove(CONTENT_LENGTH);
      headers.remove(CONTENT_TYPE);
      return text;
    }
    if (!addsType && (headers.find(CONTENT_TYPE) < 0 || !isSame(text, body))) type.setIn(headers);
    return text;
  }

  /** Applies the changes and keeps only the last content-type. Returns whether the content type has changed. */
  #apply(changes: HeaderMutations, headers: HeaderBlock, info: StreamInfo): boolean {
    const former = headers.get(CONTENT_TYPE);
    changes.apply(headers, info);
    let last = headers.find(CONTENT_TYPE);
    for (let next = last; next >= 0; next = headers.find(CONTENT_TYPE, next + 1)) {
      if (next !== last) headers.removeAt(last);
      last = next;
    }
    return last >= 0 && headers.value(last) !== former;
  }

  #mapperFor(info: StreamInfo): ResponseMapper | undefined {
    const mappers = this.#mappers;
    for (let i = 0; i < mappers.length; i++) if (mappers[i]!.filter.matches(info)) return mappers[i];
    return undefined;
  }
}

function isSame(one: string | Uint8Array, other: string | Uint8Array): boolean {
  return one === other || (one.length === other.length && Buffer.from(one).equals(Buffer.from(other)));
}
