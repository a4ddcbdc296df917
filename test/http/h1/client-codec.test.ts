// Complete conversations of the client codec with a server.

import t from 'tap';
import { StreamEnd } from '../../../src/http/codec/connections.js';
import { ResetReason } from '../../../src/http/codec/streams.js';
import { ClientPeer } from './peers.js';
import { playClient } from './playbook.js';

playClient(
  t,
  'requests on one connection follow each other',
  String.raw`
  !! request GET /a host=x
  << GET /a HTTP/1.1\r\nhost: x\r\n\r\n
  >> HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello
  .. headers 200 content-length=5
  .. data hello
  .. end
  .. reusable
  !! request POST /b host=x content-length=3 | abc
  << POST /b HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\n\r\nabc
  >> HTTP/1.1 204 No Content\r\nX: y\r\n\r\n
  .. headers 204 x=y
  .. end
  .. reusable
  `,
);

playClient(
  t,
  'requests without content have content-length: 0 when their method may have content',
  String.raw`
  !! request POST /a host=x
  << POST /a HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n
  >> HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n
  .. headers 200 content-length=0
  .. end
  .. reusable
  !! request DELETE /a host=x
  << DELETE /a HTTP/1.1\r\nhost: x\r\n\r\n
  >> HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n
  .. headers 304 content-length=7
  .. end
  .. reusable
  !! request SEARCH /a host=x
  << SEARCH /a HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n
  >> HTTP/1.1 204 No Content\r\n\r\n
  .. headers 204
  .. end
  .. reusable
  `,
);

playClient(
  t,
  'a body without a length is sent in chunks, followed by trailers',
  String.raw`
  !! open POST /a host=x
  !! body hello
  !! trailers x-sum=5 host=evil content-length=4
  << POST /a HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nx-sum: 5\r\n\r\n
  >> HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n
  .. headers 200 content-length=0
  .. end
  .. reusable
  `,
);

playClient(
  t,
  'framing, routing and connection fields are not sent in trailers',
  String.raw`
  !! open POST /a host=x
  !! trailers te=trailers connection=close keep-alive=1 proxy-connection=close transfer-encoding=chunked trailer=x x-sum=0 upgrade=h expect=100-continue host=y
  << POST /a HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n0\r\nx-sum: 0\r\n\r\n
  >> HTTP/1.1 204 No Content\r\n\r\n
  .. headers 204
  .. end
  .. reusable
  `,
);

playClient(
  t,
  'a request has a single framing field, whatever its headers contained',
  String.raw`
  !! open POST /a host=x transfer-encoding=chunked content-length=3
  !! last abc
  << POST /a HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\n\r\nabc
  >> HTTP/1.1 204 No Content\r\n\r\n
  .. headers 204
  .. end
  .. reusable
  !! request POST /b host=x transfer-encoding=chunked
  << POST /b HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n
  >> HTTP/1.1 204 No Content\r\n\r\n
  .. headers 204
  .. end
  .. reusable
  !! open POST /c host=x transfer-encoding=Chunked
  !! last abc
  << POST /c HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n
  >> HTTP/1.1 204 No Content\r\n\r\n
  .. headers 204
  .. end
  .. reusable
  `,
);

playClient(
  t,
  'chunked responses are decoded, and keep their trailers',
  String.raw`
  !! request GET /a host=x
  << GET /a HTTP/1.1\r\nhost: x\r\n\r\n
  >> HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-Sum: 5\r\n\r\n
  .. headers 200 transfer-encoding=chunked
  .. data hello
  .. trailers x-sum=5
  .. reusable
  `,
);

playClient(
  t,
  'a response without a length lasts until the connection closes',
  String.raw`
  !! request GET /a host=x
  << GET /a HTTP/1.1\r\nhost: x\r\n\r\n
  >> HTTP/1.1 200\r\nX: y\r\n\r\nhello\r\n
  .. headers 200 x=y
  .. data hello\r\n
  !! fin
  .. end
  .. used up
  `,
);

playClient(
  t,
  'responses to HEAD have no body, whatever their headers say',
  String.raw`
  !! request HEAD /a host=x
  << HEAD /a HTTP/1.1\r\nhost: x\r\n\r\n
  >> HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n
  .. headers 200 content-length=500
  .. end
  .. reusable
  !! request HEAD /a host=x
  << HEAD /a HTTP/1.1\r\nhost: x\r\n\r\n
  >> HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n
  .. headers 200 transfer-encoding=chunked
  .. end
  .. reusable
  `,
);

playClient(
  t,
  'the response after one to HEAD has its body',
  String.raw`
  !! request HEAD /a host=x
  << HEAD /a HTTP/1.1\r\nhost: x\r\n\r\n
  >> HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n
  .. headers 200 content-length=5
  .. end
  .. reusable
  !! request GET /a host=x
  << GET /a HTTP/1.1\r\nhost: x\r\n\r\n
  >> HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello
  .. headers 200 content-length=5
  .. data hello
  .. end
  .. reusable
  `,
);

playClient(
  t,
  'any number of 1xx responses may precede the final one',
  String.raw`
  !! open POST /a host=x content-length=2 expect=100-continue
  << POST /a HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\nexpect: 100-continue\r\n\r\n
  >> HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n
  .. informational 100
  .. informational 103 link=a
  !! last hi
  << hi
  >> HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n
  .. headers 200 content-length=0
  .. end
  .. reusable
  `,
);

playClient(
  t,
  'bodiless responses may have content-length: 0',
  String.raw`
  !! request GET /a host=x
  << GET /a HTTP/1.1\r\nhost: x\r\n\r\n
  >> HTTP/1.1 103 Early Hints\r\nContent-Length: 0\r\n\r\nHTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n
  .. informational 103 content-length=0
  .. headers 204 content-length=0
  .. end
  .. reusable
  `,
);

playClient(
  t,
  'a connection is not reusable after Connection: close or HTTP/1.0, and reusable with keep-alive',
  String.raw`
  !! request GET /a host=x
  << GET /a HTTP/1.1\r\nhost: x\r\n\r\n
  >> HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n
  .. headers 200 connection=keep-alive content-length=0
  .. end
  .. reusable
  !! request GET /b host=x
  << GET /b HTTP/1.1\r\nhost: x\r\n\r\n
  >> HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n
  .. headers 200 content-length=0 close
  .. end
  .. used up
  `,
);

playClient(
  t,
  'Connection: close makes the connection unusable',
  String.raw`
  !! request GET /a host=x connection=close
  << GET /a HTTP/1.1\r\nhost: x\r\n\r\n
  >> HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok
  .. headers 200 connection=close content-length=2 close
  .. data ok
  .. end
  .. used up
  `,
);

playClient(
  t,
  'a response before the end of the request: the connection is reusable once the request is complete',
  String.raw`
  !! open POST /a host=x content-length=4
  !! body ab
  << POST /a HTTP/1.1\r\nhost: x\r\ncontent-length: 4\r\n\r\nab
  >> HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n
  .. headers 200 content-length=0
  .. end
  !! last cd
  << cd
  .. reusable
  `,
);

playClient(
  t,
  'a response to a request sent completely but not ended: the connection is reusable once it is ended',
  String.raw`
  !! open POST /a host=x content-length=2
  !! body ab
  << POST /a HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\nab
  >> HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n
  .. headers 200 content-length=0
  .. end
  !! finish
  .. reusable
  `,
);

playClient(
  t,
  'a response before the end of the request: the connection is unusable when the request is reset',
  String.raw`
  !! open POST /a host=x
  !! body ab
  << POST /a HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n
  >> HTTP/1.1 413 Payload Too Large\r\nContent-Length: 0\r\n\r\n
  .. headers 413 content-length=0
  .. end
  !! reset
  .. used up
  !! last cd
  `,
);

playClient(
  t,
  'a final response before the end of the request ends the exchange at once when the server closes',
  String.raw`
  !! open POST /a host=x
  << POST /a HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n
  >> HTTP/1.1 413 Payload Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n
  .. headers 413 connection=close content-length=0 close
  .. end
  .. used up
  `,
);

playClient(
  t,
  'a request shorter than its content-length makes the connection unusable',
  String.raw`
  !! open POST /a host=x content-length=4
  !! last ab
  << POST /a HTTP/1.1\r\nhost: x\r\ncontent-length: 4\r\n\r\nab
  .. reset local
  .. used up
  `,
);

playClient(
  t,
  'bytes on an idle connection are an error',
  String.raw`
  >> HTTP/1.1 408 Request Timeout\r\n\r\n
  .. protocol error http1.codec_error
  `,
);

playClient(
  t,
  'resetting a stream makes the connection unusable',
  String.raw`
  !! request GET /a host=x
  << GET /a HTTP/1.1\r\nhost: x\r\n\r\n
  !! reset
  .. used up
  >> HTTP/1.1 200 OK\r\n\r\n
  `,
);

playClient(
  t,
  'an invalid response resets the stream',
  String.raw`
  !! request GET /a host=x
  << GET /a HTTP/1.1\r\nhost: x\r\n\r\n
  >> HTTP/1.1 200 OK\r\nContent-Length: 5, 5\r\n\r\n
  .. reset protocol 400 http1.codec_error
  .. protocol error http1.codec_error
  `,
);

const CUT_OFF: readonly (readonly [received: string, events: string])[] = [
  ['HTTP/1.1 20', ''],
  ['HTTP/1.1 200 OK\\r\\nContent-Len', ''],
  ['HTTP/1.1 100 Continue\\r\\n\\r\\nHTTP/1.1 2', '.. informational 100'],
  ['HTTP/1.1 200 OK\\r\\nContent-Length: 5\\r\\n\\r\\nx', '.. headers 200 content-length=5\n.. data x'],
  ['HTTP/1.1 200 OK\\r\\nContent-Length: 5\\r\\n\\r\\n', '.. headers 200 content-length=5'],
  ['HTTP/1.1 200 OK\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n5\\r\\n', '.. headers 200 transfer-encoding=chunked'],
  ['HTTP/1.1 200 OK\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n0\\r\\nx: ', '.. headers 200 transfer-encoding=chunked'],
];
for (const end of ['fin', 'broken']) {
  for (const [index, [received, events]] of CUT_OFF.entries()) {
    playClient(
      t,
      `a host that ends the connection (${end}) within a response violates the protocol: ${index}`,
      `
      !! request GET /a host=x
      << GET /a HTTP/1.1\\r\\nhost: x\\r\\n\\r\\n
      >> ${received}
      ${events}
      !! ${end}
      .. reset protocol
      .. ended too early
      `,
    );
  }
}

for (const end of ['fin', 'broken']) {
  playClient(
    t,
    `a host that ends the connection (${end}) before its response has begun resets the stream`,
    `
  !! request GET /a host=x
  << GET /a HTTP/1.1\\r\\nhost: x\\r\\n\\r\\n
  >> HTTP/1.1 100 Continue\\r\\n\\r\\n
  .. informational 100
  !! ${end}
  .. reset termination
  .. ended
  `,
  );
}

playClient(
  t,
  'a reset does not complete a response that lasts until the connection ends',
  String.raw`
  !! request GET /a host=x
  << GET /a HTTP/1.1\r\nhost: x\r\n\r\n
  >> HTTP/1.1 200 OK\r\n\r\nabc
  .. headers 200
  .. data abc
  !! broken
  .. reset termination
  .. ended
  `,
);

playClient(
  t,
  'a server that closes an idle connection causes no stream event',
  String.raw`
  !! request GET /a host=x
  << GET /a HTTP/1.1\r\nhost: x\r\n\r\n
  >> HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n
  .. headers 200 content-length=0
  .. end
  .. reusable
  !! fin
  .. ended
  `,
);

playClient(
  t,
  'an upgrade accepted by the server becomes a tunnel',
  String.raw`
  !! open GET /chat host=x connection=Upgrade upgrade=websocket
  << GET /chat HTTP/1.1\r\nhost: x\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n
  >> HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\nraw
  .. headers 101 connection=upgrade upgrade=websocket
  .. data raw
  !! body ping
  << ping
  !! finish
  .. half-close
  >> more
  .. data more
  !! fin
  .. end
  .. used up
  `,
);

playClient(
  t,
  'a tunnel that the server ends first goes on until the request ends',
  String.raw`
  !! open GET /chat host=x connection=Upgrade upgrade=websocket
  << GET /chat HTTP/1.1\r\nhost: x\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n
  >> HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\nbye
  .. headers 101 connection=upgrade upgrade=websocket
  .. data bye
  !! fin
  .. end
  !! body more
  << more
  !! finish
  .. used up
  `,
);

playClient(
  t,
  'an upgrade refused by the server continues as HTTP',
  String.raw`
  !! open GET /chat host=x upgrade=websocket
  << GET /chat HTTP/1.1\r\nhost: x\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n
  >> HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno
  .. headers 403 content-length=2
  .. data no
  .. end
  .. reset local
  .. reusable
  `,
);

playClient(
  t,
  'the body of an upgrade is sent before the response, and when the server refuses after it was sent, the connection is reusable',
  String.raw`
  !! open POST /chat host=x upgrade=websocket content-length=4
  << POST /chat HTTP/1.1\r\nhost: x\r\nupgrade: websocket\r\ncontent-length: 4\r\nconnection: upgrade\r\n\r\n
  !! body body
  << body
  >> HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno
  .. headers 403 content-length=2
  .. data no
  .. end
  .. reset local
  .. reusable
  !! open POST /chat host=x upgrade=websocket content-length=4
  << POST /chat HTTP/1.1\r\nhost: x\r\nupgrade: websocket\r\ncontent-length: 4\r\nconnection: upgrade\r\n\r\n
  !! body bo
  << bo
  >> HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n
  .. headers 101 upgrade=websocket
  !! body dymore
  << dymore
  !! finish
  .. half-close
  !! fin
  .. end
  .. used up
  `,
);

playClient(
  t,
  'a host that refuses an upgrade early gets the rest of its body before another request',
  String.raw`
  !! open POST /chat host=x upgrade=websocket content-length=4
  !! body bo
  << POST /chat HTTP/1.1\r\nhost: x\r\nupgrade: websocket\r\ncontent-length: 4\r\nconnection: upgrade\r\n\r\nbo
  >> HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n
  .. headers 403 content-length=0
  .. end
  !! last dy
  << dy
  .. reusable
  `,
);

playClient(
  t,
  'an unrequested upgrade is an error',
  String.raw`
  !! request GET /chat host=x
  << GET /chat HTTP/1.1\r\nhost: x\r\n\r\n
  >> HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n
  .. reset protocol 502 http1.codec_error
  .. protocol error http1.codec_error
  `,
);

playClient(
  t,
  'a complete request is sent without an upgrade: no tunnel could follow',
  String.raw`
  !! request GET /chat host=x upgrade=websocket
  << GET /chat HTTP/1.1\r\nhost: x\r\nupgrade: websocket\r\n\r\n
  >> HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n
  .. reset protocol 502 http1.codec_error
  .. protocol error http1.codec_error
  `,
);

playClient(
  t,
  'no body framing is sent where a tunnel starts',
  String.raw`
  !! open GET /chat host=x upgrade=websocket content-length=0 transfer-encoding=chunked
  << GET /chat HTTP/1.1\r\nhost: x\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n
  >> HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n
  .. headers 101 upgrade=websocket
  !! body raw
  << raw
  `,
);

playClient(
  t,
  'an accepted CONNECT is a tunnel; framing fields in its response are ignored',
  String.raw`
  !! open CONNECT db:5432 host=db:5432
  << CONNECT db:5432 HTTP/1.1\r\nhost: db:5432\r\n\r\n
  >> HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nraw
  .. headers 200 content-length=1
  .. data raw
  !! last bye
  << bye
  .. half-close
  >> more
  .. data more
  !! fin
  .. end
  .. used up
  `,
);

playClient(
  t,
  'a redirected CONNECT has a normal response',
  String.raw`
  !! open CONNECT db:5432 host=db:5432
  << CONNECT db:5432 HTTP/1.1\r\nhost: db:5432\r\n\r\n
  >> HTTP/1.1 302 Found\r\nContent-Length: 2\r\n\r\nno
  .. headers 302 content-length=2
  .. data no
  .. end
  .. reset local
  .. reusable
  `,
);

playClient(
  t,
  'a paused response waits',
  String.raw`
  !! request GET /a host=x
  << GET /a HTTP/1.1\r\nhost: x\r\n\r\n
  >> HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n
  .. headers 200 content-length=5
  !! pause
  >> hello
  !! resume
  .. data hello
  .. end
  .. reusable
  `,
);

t.test('bytes after a complete response never become the response to the next request', (t) => {
  const peer = new ClientPeer();
  peer.turn(() => peer.request({ start: 'GET /a', fields: [] }, undefined, true));
  peer.receive('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nHTTP/1.1 200 OK\r\nX: forged\r\n\r\n');
  t.same(peer.journal.take(), ['headers 200 content-length=0', 'end', 'used up']);
  t.end();
});

t.test('bytes held with the end of the response never become the next response either', (t) => {
  const peer = new ClientPeer();
  peer.turn(() => peer.request({ start: 'GET /', fields: [] }, undefined, true));
  peer.receive('HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nabc');
  peer.turn(() => peer.codec.pauseReading());
  peer.receive('defHTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nPOISON');
  peer.turn(() => peer.codec.resumeReading());
  t.same(peer.journal.take().slice(1), ['data abcdef', 'end', 'used up']);
  t.equal(peer.codec.bufferedBytes, 0);
  t.equal(peer.wire.memory.retainedBytes(), 0);
  t.end();
});

t.test('a connection whose close was held with the end of the response is not reused', (t) => {
  const peer = new ClientPeer();
  peer.turn(() => peer.request({ start: 'GET /', fields: [] }, undefined, true));
  peer.receive('HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nabc');
  peer.turn(() => peer.codec.pauseReading());
  peer.receive('def\r\n');
  peer.turn(() => peer.codec.end());
  peer.turn(() => peer.codec.resumeReading());
  t.same(peer.journal.take().slice(1), ['data abcdef', 'end', 'used up']);
  t.end();
});

t.test('bytes received before the request was sent are not a response to it', (t) => {
  const peer = new ClientPeer();
  peer.wire.turn('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n', (offset, length) => {
    peer.request({ start: 'GET /', fields: [] }, undefined, true);
    peer.codec.receive(offset, length);
  });
  t.same(peer.journal.take(), ['reset protocol 502 http1.codec_error', 'protocol error http1.codec_error']);
  t.end();
});

t.test('bytes received before the request headers were completely sent are not a response either', (t) => {
  const begun = () => {
    const peer = new ClientPeer();
    peer.turn(() => peer.codec.newStream(peer));
    return peer;
  };
  const whole = begun();
  whole.receive('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n');
  t.same(whole.journal.take(), ['reset protocol 502 http1.codec_error', 'protocol error http1.codec_error']);
  const part = begun();
  part.receive('HTTP/1.1 200 OK\r\nX: for');
  part.turn(() => part.codec.reset(ResetReason.LocalReset));
  t.same(part.journal.take(), ['used up']);
  t.equal(part.wire.memory.retainedBytes(), 0);
  t.end();
});

t.test('the owner learns what was missing when a stream is reset', (t) => {
  const chat = { start: 'GET /', fields: [['upgrade', 'websocket']] satisfies [string, string][] };
  const post = { start: 'POST /', fields: [] };
  const switched = 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n';
  const cases = [
    ['its response', post, '', StreamEnd.Abandoned],
    ['the response to an upgrade', chat, '', StreamEnd.Abandoned],
    ['the end of a tunnel', chat, switched, StreamEnd.CutOff],
    ['the end of a tunnel that the host has ended', chat, `${switched}fin`, StreamEnd.CutOff],
    ['nothing of a tunnel that is to end', chat, switched, StreamEnd.Closed, ResetReason.LocalClose],
    ['a response, from either side', post, '', StreamEnd.Abandoned, ResetReason.LocalClose],
    ['the rest of a request that has its response', post, 'HTTP/1.1 204 No Content\r\n\r\n', StreamEnd.Abandoned],
  ] as const;
  for (const [what, request, answer, expected, reason = ResetReason.LocalReset] of cases) {
    const peer = new ClientPeer();
    const ends: StreamEnd[] = [];
    peer.onStreamComplete = (_reusable: boolean, end?: StreamEnd) => {
      ends.push(end!);
    };
    peer.turn(() => peer.request(request, undefined, false));
    peer.receive(answer);
    if (answer.endsWith('fin')) peer.turn(() => peer.codec.end());
    t.same(ends, []);
    peer.turn(() => peer.codec.reset(reason));
    t.same(ends, [expected], what);
    peer.codec.destroy();
  }
  t.end();
});

t.test('a stream that has sent nothing leaves the connection unchanged', (t) => {
  const peer = new ClientPeer();
  peer.turn(() => {
    peer.codec.newStream(peer);
    peer.codec.reset(ResetReason.LocalReset);
  });
  t.same(peer.journal.take(), ['reusable']);
  t.end();
});

/** Heads of old hosts, and their fields. */
const OLD_HEADS: readonly (readonly [received: string, fields: string])[] = [
  ['HTTP/1.1 200 OK\\nX: y\\nContent-Length: 5\\n\\n', 'x=y content-length=5'],
  ['HTTP/1.1 200 OK\\r\\nX: y\\nContent-Length: 5\\r\\n\\n', 'x=y content-length=5'],
  ['HTTP/1.1 200 OK\\nX: y\\r\\nContent-Length: 5\\n\\r\\n', 'x=y content-length=5'],
  ['HTTP/1.1 200 OK\\r\\nX: a\\r\\n b\\r\\nContent-Length: 5\\r\\n\\r\\n', 'x=a b content-length=5'],
  [
    'HTTP/1.1 200 OK\\r\\nX: a\\s\\t\\r\\n \\t b\\r\\n\\tc: d\\r\\nContent-Length: 5\\r\\n\\r\\n',
    'x=a b c: d content-length=5',
  ],
  ['HTTP/1.1 200 OK\\r\\nX:\\r\\n b\\r\\nContent-Length:\\r\\n\\t5\\r\\n\\r\\n', 'x=b content-length=5'],
  ['HTTP/1.1 200 OK\\r\\nContent-Length: 5\\r\\nX: b\\r\\n \\r\\n\\t\\r\\n\\r\\n', 'content-length=5 x=b'],
  ['HTTP/1.1  200\\t OK\\r\\nContent-Length: 5\\r\\nX: a  b\\r\\n\\r\\n', 'content-length=5 x=a  b'],
  ['HTTP/1.1 200 OK\\r\\nContent-Length:\\r\\n 5\\r\\n\\r\\n', 'content-length=5'],
  ['HTTP/1.1\\t200\\r\\nContent-Length: 5\\r\\n\\r\\n', 'content-length=5'],
];
for (const [index, [received, fields]] of OLD_HEADS.entries()) {
  playClient(
    t,
    `the syntax of old hosts is accepted and rewritten: ${index}`,
    `
    !! request GET /a host=x
    << GET /a HTTP/1.1\\r\\nhost: x\\r\\n\\r\\n
    >> ${received}hello
    .. headers 200 ${fields}
    .. data hello
    .. end
    .. reusable
    `,
  );
}

playClient(
  t,
  'chunks and trailers of old hosts are accepted',
  String.raw`
  !! request GET /a host=x
  << GET /a HTTP/1.1\r\nhost: x\r\n\r\n
  >> HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1 \t\r\na\n1 ; x=y\r\nb\r\n0  \r\nX: a\r\n b\r\n\n
  .. headers 200 transfer-encoding=chunked
  .. data ab
  .. trailers x=a b
  .. reusable
  `,
);
