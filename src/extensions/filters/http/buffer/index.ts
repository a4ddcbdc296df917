// envoy.filters.http.buffer: buffers a request until it is complete, so that a slow client does not occupy a host.

import type { Buffer as BufferConfig, BufferPerRoute } from '../../../../config/generated/api.js';
import {
  BodyKind,
  DataStatus,
  type HeaderBlock,
  HeadersStatus,
  type HttpFilter,
  type HttpFilterExtension,
  type HttpFilterFactory,
  headerKey,
  type StreamControl,
} from '../../../sdk.js';

const CONTENT_LENGTH = headerKey('content-length');

/** The limit of a route that disables buffering. */
const OFF = 0;

export const buffer: HttpFilterExtension<BufferConfig> = {
  category: 'envoy.filters.http',
  name: 'envoy.filters.http.buffer',
  runsUpstream: true,
  typeUrls: [
    'type.googleapis.com/envoy.extensions.filters.http.buffer.v3.Buffer',
    'type.googleapis.com/envoy.extensions.filters.http.buffer.v3.BufferPerRoute',
  ],
  createOnWorker(config): HttpFilterFactory {
    const own = config.max_request_bytes!;
    return {
      create(stream, routeConfig) {
        const limit = (routeConfig as number | undefined) ?? own;
        return limit === OFF ? undefined : new BufferFilter(stream, limit);
      },
    };
  },
  /** The most specific configuration applies. */
  compileRouteConfig(configs): number | undefined {
    const config = configs.at(-1) as BufferPerRoute | undefined;
    return config?.disabled === true ? OFF : config?.buffer?.max_request_bytes;
  },
};

/** The filter of one request. A body above the limit is answered with 413. */
class BufferFilter implements HttpFilter {
  readonly #stream: StreamControl;
  readonly #limit: number;
  #headers: HeaderBlock | undefined;

  constructor(stream: StreamControl, limit: number) {
    this.#stream = stream;
    this.#limit = limit;
  }

  decodeHeaders(headers: HeaderBlock, endStream: boolean): HeadersStatus {
    if (endStream) return HeadersStatus.Continue;
    if (headers.upgrade) return this.#passUpgrade(headers);
    this.#headers = headers;
    this.#stream.setRequestBufferLimit(this.#limit);
    return HeadersStatus.StopIteration;
  }

  /** A tunnel has no end, so it cannot be buffered; but a request for one may have a body, which its head announces. */
  #passUpgrade({ contentLength }: HeaderBlock): HeadersStatus {
    if (contentLength <= this.#limit) return HeadersStatus.Continue;
    this.#stream.refuseLargeRequest();
    return HeadersStatus.StopIteration;
  }

  decodeData(_offset: number, length: number, endStream: boolean): DataStatus {
    if (this.#headers === undefined) return DataStatus.Continue;
    if (!endStream) return DataStatus.StopAndBuffer;
    // The size is now known: it replaces the chunked encoding.
    if (this.#headers.bodyKind === BodyKind.Chunked)
      this.#headers.set(CONTENT_LENGTH, String(this.#stream.heldRequestBytes() + length));
    return DataStatus.Continue;
  }

  decodeTrailers(): HeadersStatus {
    return HeadersStatus.Continue;
  }
}
