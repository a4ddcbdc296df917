// Servers that receive statsd lines: UDP, TCP and a Unix datagram socket.

import { type ChildProcess, spawn } from 'node:child_process';
import { createSocket, type Socket as UdpSocket } from 'node:dgram';
import { createRequire } from 'node:module';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { endsWithTest, type Teardown } from '../harness/index.js';

/** Received lines, and their values. */
export class Lines {
  readonly all: string[] = [];

  add(text: string): void {
    for (const line of text.split('\n')) if (line !== '') this.all.push(line);
  }

  /** Returns the values of the lines that begin with `head` and end with `tail`. */
  values(head: string, tail: string): number[] {
    const found = this.all.filter((line) => line.startsWith(`${head}:`) && line.endsWith(tail));
    return found.map((line) => Number(line.slice(head.length + 1, line.length - tail.length)));
  }

  /** Returns the sum of a counter's lines. */
  sum(head: string, tail = '|c'): number {
    return this.values(head, tail).reduce((sum, value) => sum + value, 0);
  }
}

export interface UdpPeer {
  readonly port: number;
  readonly lines: Lines;
  readonly datagrams: Buffer[];
  close(): Promise<void>;
}

export async function startUdpPeer(t: Teardown, port = 0): Promise<UdpPeer> {
  const socket: UdpSocket = createSocket({ type: 'udp4', recvBufferSize: 4 * 1024 * 1024 });
  const lines = new Lines();
  const datagrams: Buffer[] = [];
  socket.on('message', (datagram) => {
    datagrams.push(datagram);
    lines.add(datagram.toString());
  });
  await new Promise<void>((resolve) => socket.bind(port, '127.0.0.1', resolve));
  let closed: Promise<void> | undefined;
  const close = () => {
    closed ??= new Promise<void>((resolve) => socket.close(() => resolve()));
    return closed;
  };
  t.teardown(close);
  return { port: socket.address().port, lines, datagrams, close };
}

export interface TcpPeer {
  readonly port: number;
  readonly lines: Lines;
  readonly sockets: Socket[];
  close(): Promise<void>;
}

/** With `isDeaf` it accepts connections, and never reads. */
export async function startTcpPeer(t: Teardown, port = 0, isDeaf = false): Promise<TcpPeer> {
  const lines = new Lines();
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket);
    socket.on('error', () => {});
    if (isDeaf) return void socket.pause();
    let rest = '';
    socket.setEncoding('utf8').on('data', (text: string) => {
      const whole = (rest + text).lastIndexOf('\n') + 1;
      lines.add((rest + text).slice(0, whole));
      rest = (rest + text).slice(whole);
    });
  });
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  let closed: Promise<void> | undefined;
  const close = () => {
    closed ??= new Promise<void>((resolve) => {
      server.close(() => resolve());
      for (const socket of sockets) socket.destroy();
    });
    return closed;
  };
  t.teardown(close);
  return { port: (server.address() as AddressInfo).port, lines, sockets, close };
}

export interface UnixPeer {
  readonly lines: Lines;
  readonly datagrams: Buffer[];
  close(): void;
}

interface UnixDatagramSocket {
  on(event: 'message', listener: (datagram: Buffer) => void): void;
  bind(path: string): void;
  close(): void;
}

export function startUnixPeer(t: Teardown, path: string): UnixPeer {
  const { createSocket: create } = createRequire(import.meta.url)('unix-dgram') as {
    createSocket(type: string): UnixDatagramSocket;
  };
  const socket = create('unix_dgram');
  const lines = new Lines();
  const datagrams: Buffer[] = [];
  socket.on('message', (datagram) => {
    datagrams.push(datagram);
    lines.add(datagram.toString());
  });
  socket.bind(path);
  let isOpen = true;
  const close = () => {
    if (isOpen) socket.close();
    isOpen = false;
  };
  t.teardown(close);
  return { lines, datagrams, close };
}

/** A receiver in a separate process, which can be stopped and continued. */
export async function startUnixAgent(t: Teardown, path: string): Promise<ChildProcess> {
  const program = `const [, resolve, path] = process.argv;
    require(resolve).createSocket('unix_dgram', () => {}).bind(path);
    console.log('bound');`;
  const unixDgram = createRequire(import.meta.url).resolve('unix-dgram');
  const command = ['-e', program, unixDgram, path];
  const agent = endsWithTest(t, spawn(process.execPath, command, { stdio: ['ignore', 'pipe', 'inherit'] }));
  await new Promise((resolve) => agent.stdout.once('data', resolve));
  return agent;
}
