// envoy.filters.network.echo: sends the bytes of each client back to it.

import type { Echo } from '../../../../config/generated/api.js';
import type { DownstreamConnection, DownstreamHandler, TerminalNetworkFilterExtension } from '../../../sdk.js';

const MESSAGE = 'envoy.extensions.filters.network.echo.v3.Echo';

export const echo: TerminalNetworkFilterExtension<Echo> = {
  category: 'envoy.filters.network',
  name: 'envoy.filters.network.echo',
  typeUrls: [`type.googleapis.com/${MESSAGE}`],
  isTerminal: true,
  implemented: { [MESSAGE]: {} },
  createOnWorker: () => ({ accept: (connection) => new EchoedConnection(connection) }),
};

class EchoedConnection implements DownstreamHandler {
  readonly activeRequests = 0;
  readonly #connection: DownstreamConnection;

  constructor(connection: DownstreamConnection) {
    this.#connection = connection;
  }

  onData(offset: number, length: number): void {
    const { info } = this.#connection;
    if (info !== undefined) {
      info.bytesReceived += length;
      info.bytesSent += length;
    }
    this.#connection.send(offset, length);
  }

  onEnd(): void {
    this.#connection.close(0);
  }

  onReset(): void {
    this.#connection.close(0);
  }

  onListenerGone(): void {
    this.#connection.close(0);
  }

  onConnected(): void {}

  onBlocked(): void {
    this.#connection.pause();
  }

  onDrained(): void {
    this.#connection.resume();
  }

  onFault(): void {
    this.#connection.reset();
  }
}
