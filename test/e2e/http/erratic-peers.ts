// Erratic clients and hosts. Their behaviour is drawn from BATON_TEST_SEED, so that a run can be repeated as far as timing
// allows.

import type { Socket } from 'node:net';

export const random = seeded(Number(process.env['BATON_TEST_SEED'] ?? 20_240_817));

export function pick<T>(values: readonly T[]): T {
  return values[Math.floor(random() * values.length)]!;
}

/** Runs a client: requests of all sorts, cut at random points, and a connection closed in a random way. */
export function runErraticClient(socket: Socket): void {
  const timer = setTimeout(() => socket.destroy(), 100 + random() * 400);
  socket.on('close', () => clearTimeout(timer));
  if (random() < 0.1) socket.pause();
  else socket.resume();
  let bytes = '';
  for (let count = 1 + Math.floor(random() * 3); count > 0; count--) bytes += request();
  if (random() < 0.3) bytes = bytes.slice(0, Math.floor(random() * bytes.length));
  const at = Math.floor(random() * bytes.length);
  socket.write(bytes.slice(0, at), 'latin1');
  setTimeout(() => {
    if (socket.destroyed) return;
    socket.write(bytes.slice(at), 'latin1');
    const fate = random();
    if (fate < 0.15) socket.resetAndDestroy();
    else if (fate < 0.3) socket.destroy();
    else if (fate < 0.45) socket.end();
  }, random() * 20);
}

function request(): string {
  const path = pick(['/', '/', '/retry', '/retry', '/closed', '/nowhere', '/upgrade']);
  const head = `${pick(['GET', 'POST', 'HEAD', 'PUT'])} ${path} HTTP/1.1\r\nhost: a\r\n`;
  const body = 'x'.repeat(Math.floor(random() ** 4 * 200_000));
  switch (pick(['none', 'none', 'length', 'chunked', 'expect', 'upgrade', 'close', 'nonsense'])) {
    case 'length':
      return `${head}content-length: ${body.length}\r\n\r\n${body}`;
    case 'chunked':
      return `${head}transfer-encoding: chunked\r\n\r\n${chunk(body)}${chunk('more')}0\r\nx-end: 1\r\n\r\n`;
    case 'expect':
      return `${head}expect: 100-continue\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
    case 'upgrade':
      return `${head}connection: upgrade\r\nupgrade: websocket\r\n\r\n${body}`;
    case 'close':
      return `${head}connection: close\r\n\r\n`;
    case 'nonsense':
      return `${head}${pick(['transfer-encoding: chunked\r\n\r\nzz', 'no colon\r\n\r\n', '\0'])}`;
    default:
      return `${head}\r\n`;
  }
}

/** Runs a host when bytes have arrived: it answers, aborts, hangs or sends garbage. */
export function actAsErraticHost(socket: Socket): void {
  const body = 'y'.repeat(Math.floor(random() ** 4 * 200_000));
  const whole = `HTTP/1.1 ${pick([200, 200, 200, 503, 404])} Whatever\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
  const answers = [
    whole,
    whole,
    whole,
    `HTTP/1.1 103 Early Hints\r\n\r\n${whole}`,
    `HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n${chunk(body)}0\r\nx-end: 1\r\n\r\n`,
    `HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n${body}`,
    'HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\nhello',
    'nonsense\r\n\r\n',
    '',
  ];
  let bytes = pick(answers);
  if (random() < 0.2) bytes = bytes.slice(0, Math.floor(random() * bytes.length));
  socket.write(bytes, 'latin1');
  const fate = random();
  if (fate < 0.1) socket.end();
  else if (fate < 0.2) socket.resetAndDestroy();
  else if (fate < 0.25) setTimeout(() => socket.destroy(), random() * 50);
}

function chunk(data: string): string {
  return data === '' ? '' : `${data.length.toString(16)}\r\n${data}\r\n`;
}

/** mulberry32 */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
