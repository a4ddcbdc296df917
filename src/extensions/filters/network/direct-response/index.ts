// envoy.filters.network.direct_response: sends the same bytes to each client, and closes its connection.

import type { DirectResponseConfig } from '../../../../config/generated/api.js';
import {
  type DownstreamConnection,
  type DownstreamHandler,
  readDataSource,
  reportMistakes,
  type TerminalNetworkFilterExtension,
} from '../../../sdk.js';

const MESSAGE = 'envoy.extensions.filters.network.direct_response.v3.Config';
/** It is sent in one piece, for which a worker has blocks of a little more. */
const MAX_RESPONSE_BYTES = 8 * 1024 * 1024;

export const directResponse: TerminalNetworkFilterExtension<DirectResponseConfig> = {
  category: 'envoy.filters.network',
  name: 'envoy.filters.network.direct_response',
  typeUrls: [`type.googleapis.com/${MESSAGE}`],
  isTerminal: true,
  implemented: { [MESSAGE]: { response: true } },
  validate(config, report) {
    reportMistakes(report, '', () => {
      if (responseOf(config).length > MAX_RESPONSE_BYTES) report('response', 'it is larger than 8 MiB');
    });
  },
  createOnWorker(config) {
    const response = responseOf(config);
    return {
      accept(connection) {
        const isSecuring = connection.chain.isTls && connection.security === undefined;
        if (isSecuring) return new SecuredAnswer(connection, response);
        answer(connection, response);
        return undefined;
      },
    };
  },
};

/** Throws a BatonError if the response cannot be read. */
function responseOf({ response }: DirectResponseConfig): Uint8Array {
  return response === undefined ? new Uint8Array(0) : readDataSource(response, 'response');
}

function answer(connection: DownstreamConnection, response: Uint8Array): void {
  const { info, transport } = connection;
  if (info !== undefined) {
    info.responseCodeDetails = 'direct_response';
    info.bytesSent = response.length;
  }
  const { memory } = transport;
  const offset = memory.scratch(response.length);
  memory.bytes.set(response, offset);
  connection.send(offset, response.length);
  connection.close(0);
}

/** Answers a client when its TLS handshake has finished: before, the response would be sent in the clear. */
class SecuredAnswer implements DownstreamHandler {
  readonly activeRequests = 0;
  readonly #connection: DownstreamConnection;
  readonly #response: Uint8Array;

  constructor(connection: DownstreamConnection, response: Uint8Array) {
    this.#connection = connection;
    this.#response = response;
  }

  onSecured(): void {
    answer(this.#connection, this.#response);
  }

  onReset(): void {
    this.#connection.close(0);
  }

  onListenerGone(): void {
    this.#connection.close(0);
  }

  onFault(): void {
    this.#connection.reset();
  }

  /** No-ops: nothing is received or sent before the answer. */
  onConnected(): void {}
  onData(): void {}
  onEnd(): void {}
  onBlocked(): void {}
  onDrained(): void {}
}
