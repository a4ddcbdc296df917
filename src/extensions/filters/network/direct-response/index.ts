// envoy.filters.network.direct_response: sends the same bytes to each client, and closes its connection.

import type { DirectResponseConfig } from '../../../../config/generated/api.js';
import {
  type DownstreamConnection,
  readDataSource,
  reportMistakes,
  type TerminalNetworkFilterExtension,
} from '../../../sdk.js';

const MESSAGE = 'envoy.extensions.filters.network.direct_response.v3.Config';

export const directResponse: TerminalNetworkFilterExtension<DirectResponseConfig> = {
  category: 'envoy.filters.network',
  name: 'envoy.filters.network.direct_response',
  typeUrls: [`type.googleapis.com/${MESSAGE}`],
  isTerminal: true,
  implemented: { [MESSAGE]: { response: true } },
  validate(config, report) {
    reportMistakes(report, '', () => responseOf(config));
  },
  createOnWorker(config) {
    const response = responseOf(config);
    return {
      accept(connection) {
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
