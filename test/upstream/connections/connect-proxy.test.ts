// The answers of HTTP proxies to CONNECT: however they arrive, only a complete 200 opens the tunnel.

import t from 'tap';
import { Answer, ConnectAnswer, connectProxy } from '../../../src/upstream/connections/connect-proxy.js';
import type { Host } from '../../../src/upstream/hosts/host.js';

const OK = 'HTTP/1.1 200 OK\r\nvia: a\r\n\r\n';

t.test('the answer ends with its empty line, and the rest is not part of it', async (t) => {
  t.equal(new ConnectAnswer().receive(Buffer.from(OK)), OK.length);
  t.equal(new ConnectAnswer().receive(Buffer.from(`${OK}hello`)), OK.length);
  for (let at = 1; at < OK.length; at++) {
    const answer = new ConnectAnswer();
    t.equal(answer.receive(Buffer.from(OK.slice(0, at))), Answer.Incomplete);
    t.equal(answer.receive(Buffer.from(`${OK.slice(at)}x`)), OK.length - at);
  }
});

t.test('other answers are refused', async (t) => {
  for (const line of [
    'HTTP/1.1 201 OK',
    'HTTP/1.1 100 Continue',
    'HTTP/1.1 2000',
    'HTTP/2 200',
    'SSH-2.0',
    ' HTTP/1.1 200',
    '',
  ])
    t.equal(new ConnectAnswer().receive(Buffer.from(`${line}\r\n\r\n`)), Answer.Refused, line);
});

t.test('a head without end is refused after 64 KiB, whatever its pieces', async (t) => {
  for (const size of [1, 1000, 200_000]) {
    const answer = new ConnectAnswer();
    const piece = Buffer.alloc(size, 'a');
    let received = 0;
    let result: number = Answer.Incomplete;
    for (; result === Answer.Incomplete && received < 200_000; received += size) result = answer.receive(piece);
    t.equal(result, Answer.Refused);
    t.ok(received <= Math.max(64 * 1024 + size, size));
  }
});

t.test('only hosts with an IP address have a proxy', async (t) => {
  const target = (address: string, hostname = '') => {
    const host = { address, hostname, metadata: undefined, localityMetadata: undefined } as unknown as Host;
    const request = connectProxy(host, '10.0.0.9:3128', true)?.request;
    return request && Buffer.from(request).toString('latin1').split(' ')[1];
  };
  t.equal(target('10.0.0.1:80'), '10.0.0.1:80');
  t.equal(target('[2001:db8::1]:80'), '[2001:db8::1]:80');
  t.equal(target('10.0.0.1:80', 'host.test'), 'host.test:80');
  t.equal(target('10.0.0.1:80', 'a HTTP/1.1\r\nx: y'), '10.0.0.1:80');
  t.equal(target('/run/host.sock', 'host.test'), undefined);
  t.equal(target('/run/a:80 HTTP/1.1\r\nx:1'), undefined);
});
