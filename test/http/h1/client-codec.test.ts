// Whole conversations of the client codec with a server.

import t from 'tap';
import { StreamEnd } from '../../../src/http/codec/connections.js';
import { ResetReason } from '../../../src/http/codec/streams.js';
import { ClientPeer } from './peers.js';
import { playClient } from './playbook.js';

playClient(
  t,
  'requests follow each other on one connection',
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
  'requests without content say so when their method may have some',
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
  'a body without length is sent in chunks, with trailers behind it',
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
  'nothing that frames or routes a message, or is for its connection, is sent in trailers',
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
  'a request says in one way only where its body ends, whatever its head had',
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
  'chunked responses lose their framing and keep their trailers',
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
  'a response without length lasts until the connection ends',
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
  'responses to HEAD have no body, whatever they say',
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
  'the response behind one to HEAD has its body',
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
  'any number of 1xx precede the answer',
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
  'responses that can have no body may say that theirs is empty',
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
  'Connection: close and HTTP/1.0 use the connection up; HTTP/1.0 with keep-alive does not',
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
  'Connection: close uses the connection up',
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
  'a response to a request that is sent as a whole, but has not been ended: the connection is reusable once it is',
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
  'a response before the end of the request: the connection is used up when the request is given up',
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
  'a request that is shorter than it said uses the connection up',
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
  'giving a stream up uses the connection up',
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

playClient(
  t,
  'a server that leaves before its response is complete resets the stream',
  String.raw`
  !! request GET /a host=x
  << GET /a HTTP/1.1\r\nhost: x\r\n\r\n
  >> HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc
  .. headers 200 content-length=5
  .. data abc
  !! fin
  .. reset termination
  .. ended
  `,
);

playClient(
  t,
  'a server that leaves before its response has begun resets the stream',
  String.raw`
  !! request GET /a host=x
  << GET /a HTTP/1.1\r\nhost: x\r\n\r\n
  >> HTTP/1.1 20
  !! fin
  .. reset termination
  .. ended
  `,
);

playClient(
  t,
  'a server that leaves an idle connection is no event for a stream',
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
  'an upgrade that the server accepts is a tunnel',
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
  'an upgrade that the server refuses goes on as HTTP',
  String.raw`
  !! open GET /chat host=x upgrade=websocket
  << GET /chat HTTP/1.1\r\nhost: x\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n
  >> HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno
  .. headers 403 content-length=2
  .. data no
  .. end
  .. reusable
  `,
);

playClient(
  t,
  'the body of an upgrade is sent before its answer, and a connection that has had all of it is free when the server refuses',
  String.raw`
  !! open POST /chat host=x upgrade=websocket content-length=4
  << POST /chat HTTP/1.1\r\nhost: x\r\nupgrade: websocket\r\ncontent-length: 4\r\nconnection: upgrade\r\n\r\n
  !! body body
  << body
  >> HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno
  .. headers 403 content-length=2
  .. data no
  .. end
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
  'a host that refuses an upgrade before it has all of its body gets the rest before another request',
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
  'an upgrade that nobody asked for is an error',
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
  'a complete request asks for no other protocol: there is nobody to speak it',
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
  'no body is announced where a tunnel begins',
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
  'CONNECT that is accepted is a tunnel; framing in its response means nothing',
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
  'CONNECT that is redirected has an answer like others',
  String.raw`
  !! open CONNECT db:5432 host=db:5432
  << CONNECT db:5432 HTTP/1.1\r\nhost: db:5432\r\n\r\n
  >> HTTP/1.1 302 Found\r\nContent-Length: 2\r\n\r\nno
  .. headers 302 content-length=2
  .. data no
  .. end
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

t.test('bytes behind a complete response never become the answer to the next request', (t) => {
  const peer = new ClientPeer();
  peer.turn(() => peer.request({ start: 'GET /a', fields: [] }, undefined, true));
  peer.receive('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nHTTP/1.1 200 OK\r\nX: forged\r\n\r\n');
  t.same(peer.journal.take(), ['headers 200 content-length=0', 'end', 'used up']);
  t.end();
});

t.test('nor do those that were held with the end of the response', (t) => {
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

t.test('a connection whose end was held with that of the response is not used again', (t) => {
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

t.test('what has come before the request went out is no answer to it', (t) => {
  const peer = new ClientPeer();
  peer.wire.turn('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n', (offset, length) => {
    peer.request({ start: 'GET /', fields: [] }, undefined, true);
    peer.codec.receive(offset, length);
  });
  t.same(peer.journal.take(), ['reset protocol 502 http1.codec_error', 'protocol error http1.codec_error']);
  t.end();
});

t.test('nor is what comes before its head has gone out, whole or in part', (t) => {
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

t.test('an owner is told what a stream lacks when it is given up', (t) => {
  const chat = { start: 'GET /', fields: [['upgrade', 'websocket']] satisfies [string, string][] };
  const post = { start: 'POST /', fields: [] };
  const switched = 'HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n';
  const cases = [
    ['its answer', post, '', StreamEnd.Abandoned],
    ['the answer whether there is a tunnel', chat, '', StreamEnd.Abandoned],
    ['the end of a tunnel', chat, switched, StreamEnd.CutOff],
    [
      'nothing: of the rest of the request there is no use',
      post,
      'HTTP/1.1 204 No Content\r\n\r\n',
      StreamEnd.Complete,
    ],
  ] as const;
  for (const [what, request, answer, expected] of cases) {
    const peer = new ClientPeer();
    const ends: StreamEnd[] = [];
    peer.onStreamComplete = (_reusable: boolean, end?: StreamEnd) => {
      ends.push(end!);
    };
    peer.turn(() => peer.request(request, undefined, false));
    peer.receive(answer);
    t.same(ends, []);
    peer.turn(() => peer.codec.reset(ResetReason.LocalReset));
    t.same(ends, [expected], what);
    peer.codec.destroy();
  }
  t.end();
});

t.test('a stream that has sent nothing leaves the connection as it was', (t) => {
  const peer = new ClientPeer();
  peer.turn(() => {
    peer.codec.newStream(peer);
    peer.codec.reset(ResetReason.LocalReset);
  });
  t.same(peer.journal.take(), ['reusable']);
  t.end();
});
