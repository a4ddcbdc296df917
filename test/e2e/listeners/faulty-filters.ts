// Loaded into Baton before its own code (--import): a network filter that refuses every connection and leaves it open,
// configured by the message of the Thrift router; one that throws in every callback, configured by that of the generic router;
// and one that does what the client requests, configured by that of the Dubbo router.

import { EXTENSIONS } from '../../../src/extensions/index.js';
import type { DownstreamConnection, TerminalNetworkFilterExtension } from '../../../src/extensions/sdk.js';

const refusing: TerminalNetworkFilterExtension = {
  category: 'envoy.filters.network',
  name: 'acme.refusing',
  typeUrls: ['type.googleapis.com/envoy.extensions.filters.network.thrift_proxy.router.v3.Router'],
  isTerminal: true,
  createOnWorker: () => ({ accept: () => undefined }),
};

const fail = (): never => {
  throw new Error('a mistake');
};

const failing: TerminalNetworkFilterExtension = {
  category: 'envoy.filters.network',
  name: 'acme.failing',
  typeUrls: ['type.googleapis.com/envoy.extensions.filters.network.generic_proxy.router.v3.Router'],
  isTerminal: true,
  createOnWorker: () => ({
    accept: () => ({
      activeRequests: 0,
      onConnected: fail,
      onData: fail,
      onBlocked: fail,
      onDrained: fail,
      onEnd: fail,
      onReset: fail,
      onFault: fail,
      onDrainEnd: fail,
      onListenerGone: fail,
    }),
  }),
};

const CALLS: Readonly<Record<string, (connection: DownstreamConnection, offset: number, length: number) => void>> = {
  echo: (connection, offset, length) => connection.send(offset, length),
  before: (connection, _offset, length) => connection.send(-5, length),
  many: (connection, offset) => connection.send(offset, 1e12),
  beyond: (connection, offset) => connection.send(offset, connection.transport.memory.bytes.length - offset + 1),
  fraction: (connection, offset, length) => connection.send(offset + 0.5, length),
  nothing: (connection, offset) => connection.send(offset, Number.NaN),
  yesterday: (connection) => connection.close(-1),
  never: (connection) => connection.close(1e12),
};

const obeying: TerminalNetworkFilterExtension = {
  category: 'envoy.filters.network',
  name: 'acme.obeying',
  typeUrls: ['type.googleapis.com/envoy.extensions.filters.network.dubbo_proxy.router.v3.Router'],
  isTerminal: true,
  createOnWorker: (_config, _chain, { memory }) => ({
    accept: (connection) => ({
      activeRequests: 0,
      onConnected: () => undefined,
      onData: (offset, length) => CALLS[memory.text(offset, offset + length)]!(connection, offset, length),
      onBlocked: () => undefined,
      onDrained: () => undefined,
      onEnd: () => connection.close(0),
      onReset: () => connection.close(0),
      onFault: () => connection.reset(),
      onListenerGone: () => connection.close(0),
    }),
  }),
};

(EXTENSIONS as TerminalNetworkFilterExtension[]).push(refusing, failing, obeying);
