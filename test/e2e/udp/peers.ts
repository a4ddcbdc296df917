// UDP peers of tests.

import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { type Config, type Teardown, waitFor } from '../harness/index.js';

const ROUTE = 'type.googleapis.com/envoy.extensions.filters.udp.udp_proxy.v3.Route';
const PROXY = 'type.googleapis.com/envoy.extensions.filters.udp.udp_proxy.v3.UdpProxyConfig';

/** Answers each datagram with its name and the datagram's text. */
export async function startUdpEcho(t: Teardown, name: string): Promise<{ port: number; peers: Set<number> }> {
  const socket = createSocket('udp4');
  const peers = new Set<number>();
  socket.on('message', (message, { address, port }) => {
    peers.add(port);
    socket.send(`${name}:${message}`, port, address);
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  t.teardown(() => socket.close());
  return { port: socket.address().port, peers };
}

/** Returns a port that no socket is bound to. */
export async function freeUdpPort(): Promise<number> {
  const socket = createSocket('udp4');
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  const { port } = socket.address();
  socket.close();
  return port;
}

export class UdpClient {
  readonly received: Buffer[] = [];
  readonly socket: Socket;

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.on('message', (message) => this.received.push(message));
    // The proxy may be gone.
    socket.on('error', () => {});
  }

  static async connect(t: Teardown, port: number, address = '127.0.0.1'): Promise<UdpClient> {
    const socket = createSocket('udp4');
    socket.connect(port, address);
    await once(socket, 'connect');
    t.teardown(() => socket.close());
    return new UdpClient(socket);
  }

  send(datagram: string | Buffer): void {
    this.socket.send(datagram);
  }

  /** Sends a datagram and returns the next one that arrives. */
  async ask(datagram: string | Buffer): Promise<string> {
    return (await this.askBytes(datagram)).toString();
  }

  async askBytes(datagram: string | Buffer): Promise<Buffer> {
    const known = this.received.length;
    this.send(datagram);
    await waitFor(() => this.received.length > known, { what: 'a datagram' });
    return this.received[known]!;
  }
}

export function routeTo(cluster: string): Config {
  return { action: { name: 'route', typed_config: { '@type': ROUTE, cluster } } };
}

/** Returns the filter of a UDP listener that routes to a cluster. */
export function udpProxy(cluster: string, config: Config = {}): Config {
  return {
    name: 'envoy.filters.udp_listener.udp_proxy',
    typed_config: { '@type': PROXY, stat_prefix: 'foo', matcher: { on_no_match: routeTo(cluster) }, ...config },
  };
}

export function udpListener(name: string, filters: Config[], config: Config = {}, address = '127.0.0.1'): Config {
  return {
    name,
    stat_prefix: name,
    address: { socket_address: { protocol: 'UDP', address, port_value: 0 } },
    listener_filters: filters,
    ...config,
  };
}
