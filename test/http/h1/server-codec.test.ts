// Complete conversations of a client with the server codec.

import t from 'tap';
import { ExchangeEnd } from '../../../src/http/codec/connections.js';
import { ResetReason } from '../../../src/http/codec/streams.js';
import { ServerPeer } from './peers.js';
import { playServer } from './playbook.js';

playServer(
  t,
  'requests on one connection follow each other',
  String.raw`
  >> GET /a HTTP/1.1\r\nHost: x\r\n\r\n
  .. headers GET /a host=x
  .. end
  !! answer 200 content-length=5 | hello
  << HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello
  .. idle
  >> GET /b HTTP/1.1\r\nHost: y\r\nAccept: */*\r\n\r\n
  .. headers GET /b host=y accept=*/*
  .. end
  !! answer 204
  << HTTP/1.1 204 No Content\r\n\r\n
  .. idle
  `,
);

playServer(
  t,
  'pipelined requests are decoded one at a time and answered in order',
  String.raw`
  >> GET /a HTTP/1.1\r\nHost: x\r\n\r\nPOST /b HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabcGET /c HTTP/1.1\r\nHost: x\r\n\r\n
  .. headers GET /a host=x
  .. end
  !! answer 200 | 1
  << HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\n1\r\n0\r\n\r\n
  .. idle
  .. headers POST /b host=x content-length=3
  .. data abc
  .. end
  !! answer 200 | 2
  << HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\n2\r\n0\r\n\r\n
  .. idle
  .. headers GET /c host=x
  .. end
  !! answer 200 | 3
  << HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\n3\r\n0\r\n\r\n
  .. idle
  `,
);

playServer(
  t,
  'pipelined requests that are answered at once are sent in one range',
  String.raw`
  !! auto 200 content-length=2 | ok
  >> GET /a HTTP/1.1\r\nHost: x\r\n\r\nGET /b HTTP/1.1\r\nHost: x\r\n\r\nGET /c HTTP/1.1\r\nHost: x\r\n\r\n
  << HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok
  << HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok
  << HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok
  .. headers GET /a host=x
  .. end
  .. idle
  .. headers GET /b host=x
  .. end
  .. idle
  .. headers GET /c host=x
  .. end
  .. idle
  `,
);

playServer(
  t,
  'requests on one connection share no state',
  String.raw`
  >> HEAD /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\nPOST /b HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n!GET /c HTTP/1.1\r\nHost: x\r\n\r\n
  .. headers HEAD /a connection=keep-alive
  .. end
  !! answer 200 content-length=2 | ok
  << HTTP/1.0 200 OK\r\ncontent-length: 2\r\nconnection: keep-alive\r\n\r\n
  .. idle
  .. headers POST /b host=x content-length=1
  .. data !
  .. end
  !! answer 200 | ok
  << HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n
  .. idle
  .. headers GET /c host=x
  .. end
  !! answer 204
  << HTTP/1.1 204 No Content\r\n\r\n
  .. idle
  `,
  { acceptHttp10: true },
);

playServer(
  t,
  'an invalid request after a valid one is refused in its turn',
  String.raw`
  >> GET /a HTTP/1.1\r\nHost: x\r\n\r\nGET /b HTTP/1.1\r\nHost : x\r\n\r\n
  .. headers GET /a host=x
  .. end
  !! answer 200
  << HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\nHTTP/1.1 400 Bad Request\r\ncontent-length: 11\r\nconnection: close\r\n\r\nBad Request
  .. idle
  .. invalid 400 http1.codec_error
  .. close
  `,
);

playServer(
  t,
  'a client that does not read its responses gets no further ones',
  String.raw`
  !! auto 200
  !! blocked
  >> GET /a HTTP/1.1\r\nHost: x\r\n\r\nGET /b HTTP/1.1\r\nHost: x\r\n\r\n
  ..
  !! drained
  << HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n
  .. headers GET /a host=x
  .. end
  .. idle
  .. headers GET /b host=x
  .. end
  .. idle
  `,
);

playServer(
  t,
  'a non-canonical length does not affect the next request',
  String.raw`
  !! auto 204
  >> POST /a HTTP/1.1\r\nHost: x\r\nContent-Length:\t03\r\n\r\nabcGET /b HTTP/1.1\r\nHost: x\r\n\r\n
  .. headers POST /a host=x content-length=3
  .. data abc
  .. end
  .. idle
  .. headers GET /b host=x
  .. end
  .. idle
  << HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n
  `,
);

playServer(
  t,
  'a chunked body is decoded, and followed by its trailers',
  String.raw`
  >> POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n
  >> 5\r\nhello\r\nA;ext="v"\r\n0123456789\r\n0\r\nX-Sum: 15\r\nX-More: \r\n\r\n
  .. headers POST / host=x transfer-encoding=chunked
  .. data hello0123456789
  .. trailers x-sum=15 x-more=
  !! answer 200
  << HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n
  .. idle
  `,
);

playServer(
  t,
  'trailers are neither forwarded nor sent where they are not enabled',
  String.raw`
  >> POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nX-Sum: 15\r\n\r\n
  .. headers POST / host=x transfer-encoding=chunked
  .. data hello
  .. end
  !! begin 200
  !! body hi
  !! trailers x-sum=1
  << HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n
  .. idle
  `,
  { dropsTrailers: true },
);

playServer(
  t,
  'framing fields in trailers are ignored',
  String.raw`
  >> POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nContent-Length: 9\r\nContent-Length: many\r\nHost: y\r\nHost: z\r\n\r\n
  .. headers POST / host=x transfer-encoding=chunked
  .. end
  !! answer 204
  << HTTP/1.1 204 No Content\r\n\r\n
  .. idle
  `,
  { dropsTrailers: true },
);

playServer(
  t,
  'a chunked body without trailers ends with its last chunk',
  String.raw`
  >> POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: Chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\nGET /n HTTP/1.1\r\nHost: x\r\n\r\n
  .. headers POST / host=x transfer-encoding=Chunked
  .. data abc
  .. end
  !! answer 200
  << HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n
  .. idle
  .. headers GET /n host=x
  .. end
  `,
);

playServer(
  t,
  'a response of unknown length is chunked, with trailers at its end',
  String.raw`
  >> GET / HTTP/1.1\r\nHost: x\r\n\r\n
  .. headers GET / host=x
  .. end
  !! begin 200 content-type=text/plain
  << HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ntransfer-encoding: chunked\r\n\r\n
  !! body 0123456789abcdef
  << 10\r\n0123456789abcdef\r\n
  !! body
  !! trailers x-sum=16 connection=close
  << 0\r\nx-sum: 16\r\n\r\n
  .. idle
  `,
);

playServer(
  t,
  'responses to HEAD keep their length and have no body',
  String.raw`
  >> HEAD / HTTP/1.1\r\nHost: x\r\n\r\n
  .. headers HEAD / host=x
  .. end
  !! answer 200 content-length=12 | hello, world
  << HTTP/1.1 200 OK\r\ncontent-length: 12\r\n\r\n
  .. idle
  >> HEAD / HTTP/1.1\r\nHost: x\r\n\r\n
  .. headers HEAD / host=x
  .. end
  !! answer 200
  << HTTP/1.1 200 OK\r\n\r\n
  .. idle
  `,
);

playServer(
  t,
  'a refused HEAD gets no body either',
  String.raw`
  >> HEAD / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n
  .. headers HEAD / host=x transfer-encoding=chunked
  >> nonsense
  << HTTP/1.1 400 Bad Request\r\ncontent-length: 11\r\nconnection: close\r\n\r\n
  .. invalid 400 http1.codec_error
  .. close
  `,
);

playServer(
  t,
  '204 and 304 have no body; 304 keeps its content-length',
  String.raw`
  >> GET /a HTTP/1.1\r\nHost: x\r\n\r\n
  .. headers GET /a host=x
  .. end
  !! answer 204 content-length=0 transfer-encoding=chunked | ignored
  << HTTP/1.1 204 No Content\r\n\r\n
  .. idle
  >> GET /b HTTP/1.1\r\nHost: x\r\n\r\n
  .. headers GET /b host=x
  .. end
  !! answer 304 content-length=99
  << HTTP/1.1 304 Not Modified\r\ncontent-length: 99\r\n\r\n
  .. idle
  `,
);

playServer(
  t,
  "framing fields of a response are replaced by the codec's",
  String.raw`
  >> GET / HTTP/1.1\r\nHost: x\r\n\r\n
  .. headers GET / host=x
  .. end
  !! answer 200 content-length=2 transfer-encoding=chunked connection=keep-alive keep-alive=timeout=5 | ok
  << HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok
  .. idle
  >> GET / HTTP/1.1\r\nHost: x\r\n\r\n
  .. headers GET / host=x
  .. end
  !! answer 200 transfer-encoding=gzip | ok
  << HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n
  .. idle
  >> GET / HTTP/1.1\r\nHost: x\r\n\r\n
  .. headers GET / host=x
  .. end
  !! answer 200 transfer-encoding=chunked x=1 | ok
  << HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\nx: 1\r\n\r\n2\r\nok\r\n0\r\n\r\n
  .. idle
  `,
);

playServer(
  t,
  'a response without a body has content-length: 0, whatever its headers were',
  String.raw`
  !! auto 200 transfer-encoding=chunked
  >> GET / HTTP/1.1\r\nHost: x\r\n\r\n
  .. headers GET / host=x
  .. end
  .. idle
  << HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n
  !! auto 200 content-length=many
  >> GET / HTTP/1.1\r\nHost: x\r\n\r\n
  .. headers GET / host=x
  .. end
  .. idle
  << HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n
  `,
);

playServer(
  t,
  'connection fields of a response are not sent',
  String.raw`
  >> GET / HTTP/1.1\r\nHost: x\r\n\r\n
  .. headers GET / host=x
  .. end
  !! answer 200 proxy-connection=keep-alive keep-alive=timeout:5 connection=keep-alive x=1 content-length=2 | ok
  << HTTP/1.1 200 OK\r\nx: 1\r\ncontent-length: 2\r\n\r\nok
  .. idle
  `,
);

playServer(
  t,
  'a response has one header section, followed by its body only',
  String.raw`
  >> GET / HTTP/1.1\r\nHost: x\r\n\r\n
  .. headers GET / host=x
  .. end
  !! begin 200 content-length=2
  !! continue
  !! inform 103 link=a
  !! begin 500
  !! last ok
  << HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok
  .. idle
  `,
);

playServer(
  t,
  'Connection: close closes the connection after the response',
  String.raw`
  >> GET / HTTP/1.1\r\nHost: x\r\nConnection: foo, Close\r\n\r\nGET /never HTTP/1.1\r\nHost: x\r\n\r\n
  .. headers GET / host=x connection=foo, Close close
  .. end
  !! answer 200
  << HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n
  .. close
  `,
);

playServer(
  t,
  'names in Connection may have tabs around them, and Host may be empty',
  String.raw`
  >> GET / HTTP/1.1\r\nHost:\r\nConnection:\tfoo\t,\tClose\t,\r\n\r\n
  .. headers GET / host= connection=foo\t,\tClose\t, close
  .. end
  `,
);

playServer(
  t,
  'close takes precedence over keep-alive, only 100-continue is expected, and trailers without chunking end a response too',
  String.raw`
  >> POST / HTTP/1.1\r\nHost: x\r\nConnection: close, keep-alive\r\nExpect: 200-ok\r\n\r\n
  .. headers POST / host=x connection=close, keep-alive expect=200-ok close
  .. end
  !! begin 200 content-length=2
  !! body ok
  !! trailers x-sum=2
  << HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok
  .. close
  `,
);

playServer(
  t,
  'a response may close the connection',
  String.raw`
  >> GET / HTTP/1.1\r\nHost: x\r\n\r\n
  .. headers GET / host=x
  .. end
  !! answer 200 connection=close content-length=2 | ok
  << HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok
  .. close
  `,
);

playServer(
  t,
  'HTTP/1.0 is answered with 426 unless it is accepted',
  String.raw`
  >> GET / HTTP/1.0\r\n\r\n
  << HTTP/1.1 426 Upgrade Required\r\ncontent-length: 16\r\nconnection: close\r\n\r\nUpgrade Required
  .. invalid 426 low_version
  .. close
  `,
);

playServer(
  t,
  'HTTP/1.0 gets no chunks: a body without a length ends with the connection',
  String.raw`
  >> GET / HTTP/1.0\r\n\r\n
  .. headers GET / close
  .. end
  !! answer 200 transfer-encoding=chunked | hello
  << HTTP/1.0 200 OK\r\nconnection: close\r\n\r\nhello
  .. close
  `,
  { acceptHttp10: true },
);

playServer(
  t,
  'HTTP/1.0 does not keep the connection of a close-delimited response',
  String.raw`
  >> GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n
  .. headers GET / connection=keep-alive
  .. end
  !! answer 200 | hello
  << HTTP/1.0 200 OK\r\nconnection: close\r\n\r\nhello
  .. close
  `,
  { acceptHttp10: true },
);

playServer(
  t,
  'HTTP/1.0 gets no transfer-encoding in response to HEAD either',
  String.raw`
  >> HEAD / HTTP/1.0\r\n\r\n
  .. headers HEAD / close
  .. end
  !! answer 200 transfer-encoding=chunked
  << HTTP/1.0 200 OK\r\nconnection: close\r\n\r\n
  .. close
  `,
  { acceptHttp10: true },
);

playServer(
  t,
  'HTTP/1.0 keeps the connection when both sides send keep-alive and the length is known',
  String.raw`
  >> GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n
  .. headers GET / connection=Keep-Alive
  .. end
  !! inform 103 link=a
  !! continue
  !! answer 200 content-length=2 | ok
  << HTTP/1.0 200 OK\r\ncontent-length: 2\r\nconnection: keep-alive\r\n\r\nok
  .. idle
  >> POST / HTTP/1.0\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\nhi
  .. headers POST / content-length=2 expect=100-continue close
  .. data hi
  .. end
  !! answer 200
  << HTTP/1.0 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n
  .. close
  `,
  { acceptHttp10: true },
);

playServer(
  t,
  'a client with Expect gets 100 Continue, and other 1xx are sent before the final response',
  String.raw`
  >> POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nExpect: 100-Continue\r\n\r\n
  .. headers POST / host=x content-length=5 expect=100-Continue expect
  !! continue
  << HTTP/1.1 100 Continue\r\n\r\n
  !! inform 103 link=a content-length=3 transfer-encoding=chunked connection=link
  << HTTP/1.1 103 Early Hints\r\nlink: a\r\n\r\n
  >> hello
  .. data hello
  .. end
  !! answer 200
  << HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n
  .. idle
  !! continue
  !! inform 103 link=a
  `,
);

playServer(
  t,
  'a response before the end of the request closes the connection',
  String.raw`
  >> POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n01
  .. headers POST / host=x content-length=10
  .. data 01
  !! answer 413
  << HTTP/1.1 413 Payload Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\r\n
  .. close
  >> 23456789GET / HTTP/1.1\r\nHost: x\r\n\r\n
  !! answer 200
  `,
);

playServer(
  t,
  'a response that starts and ends before the end of the request closes the connection: the rest is not a request',
  String.raw`
  >> POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 39\r\n\r\n01
  .. headers POST / host=x content-length=39
  .. data 01
  !! begin 200 content-length=2
  !! last ok
  << HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok
  .. close
  >> GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n
  `,
);

playServer(
  t,
  'a response that starts before the end of the request and ends after it closes the connection',
  String.raw`
  >> POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n01
  .. headers POST / host=x content-length=4
  .. data 01
  !! begin 200
  << HTTP/1.1 200 OK\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n
  >> 23
  .. data 23
  .. end
  !! last ok
  << 2\r\nok\r\n0\r\n\r\n
  .. close
  `,
);

playServer(
  t,
  'a response shorter than its content-length aborts the connection',
  String.raw`
  >> GET / HTTP/1.1\r\nHost: x\r\n\r\n
  .. headers GET / host=x
  .. end
  !! begin 200 content-length=10
  !! body 01234
  !! finish
  << HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n01234
  .. reset local
  .. abort
  !! last 56789
  `,
);

playServer(
  t,
  'a response longer than its content-length aborts the connection, and the excess is not sent',
  String.raw`
  >> GET / HTTP/1.1\r\nHost: x\r\n\r\n
  .. headers GET / host=x
  .. end
  !! begin 200 content-length=3
  !! last 01234
  << HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n012
  .. reset local
  .. abort
  `,
);

playServer(
  t,
  'resetting a stream before its response closes the connection',
  String.raw`
  >> GET / HTTP/1.1\r\nHost: x\r\n\r\n
  .. headers GET / host=x
  .. end
  !! reset
  .. close
  `,
);
playServer(
  t,
  'resetting a stream in the middle of its response closes the connection: the client knows that bytes are missing',
  String.raw`
  >> GET / HTTP/1.1\r\nHost: x\r\n\r\n
  .. headers GET / host=x
  .. end
  !! begin 200
  << HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n
  !! reset
  .. close
  !! last more
  `,
);

playServer(
  t,
  'resetting a stream aborts the connection when nothing else shows the client that its response is incomplete',
  String.raw`
  >> GET / HTTP/1.0\r\n\r\n
  .. headers GET / close
  .. end
  !! begin 200
  !! body hello
  << HTTP/1.0 200 OK\r\nconnection: close\r\n\r\nhello
  !! reset
  .. abort
  `,
  { acceptHttp10: true },
);

playServer(
  t,
  'an accepted upgrade is a tunnel in both directions, with the bytes that arrived early',
  String.raw`
  >> GET /chat HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\r\nearly
  .. headers GET /chat host=x connection=keep-alive, Upgrade upgrade=websocket upgrade
  !! begin 101 upgrade=websocket connection=Upgrade
  << HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n
  .. data early
  >> GET / HTTP/1.1\r\n
  .. data GET / HTTP/1.1\r\n
  !! body raw
  << raw
  !! fin
  .. end
  !! last bye
  << bye
  .. close
  `,
);

for (const [how, act, ends] of [
  ['ends', '!! fin\n.. end\n!! last', '.. close'],
  ['breaks', '!! reset', '.. abort'],
] as const) {
  playServer(
    t,
    `a tunnel whose sending direction has ended goes on until the other ${how}`,
    String.raw`
    >> GET /chat HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n
    .. headers GET /chat host=x connection=Upgrade upgrade=websocket upgrade
    !! begin 101 upgrade=websocket
    << HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n
    !! body bye
    << bye
    !! half
    .. half-close
    >> more
    .. data more
    ${act}
    ${ends}
    `,
  );
}

playServer(
  t,
  'a tunnel may end with its header section',
  String.raw`
  >> GET /chat HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n
  .. headers GET /chat host=x connection=Upgrade upgrade=websocket upgrade
  !! answer 101 upgrade=websocket
  << HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n
  .. close
  `,
);

playServer(
  t,
  'a response cannot switch protocols without a request for it',
  String.raw`
  >> GET /chat HTTP/1.1\r\nHost: x\r\n\r\n
  .. headers GET /chat host=x
  .. end
  !! begin 101 upgrade=websocket
  .. reset local
  .. abort
  `,
);

playServer(
  t,
  'a refused upgrade closes the connection: later bytes belong to another protocol',
  String.raw`
  >> GET /chat HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nGET /b HTTP/1.1\r\nHost: x\r\n\r\n
  .. headers GET /chat host=x connection=Upgrade upgrade=websocket upgrade
  !! answer 403
  << HTTP/1.1 403 Forbidden\r\nconnection: close\r\ncontent-length: 0\r\n\r\n
  .. close
  `,
);

playServer(
  t,
  'the body of an upgrade comes before its response, later bytes only when the server accepts',
  String.raw`
  >> POST /chat HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 4\r\n\r\nbodyearly
  .. headers POST /chat host=x connection=Upgrade upgrade=websocket content-length=4 upgrade
  .. data body
  !! begin 101 upgrade=websocket connection=Upgrade
  << HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n
  .. data early
  !! last bye
  << bye
  .. close
  `,
);

playServer(
  t,
  'an upgrade to h2c, or a chunked one, is not an upgrade',
  String.raw`
  >> GET /a HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAM\r\n\r\n
  .. headers GET /a host=x connection=Upgrade, HTTP2-Settings upgrade=h2c http2-settings=AAM
  .. end
  !! answer 200
  << HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n
  .. idle
  >> POST /b HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n!\r\n0\r\n\r\n
  .. headers POST /b host=x connection=Upgrade upgrade=websocket transfer-encoding=chunked
  .. data !
  .. end
  `,
);

playServer(
  t,
  'an Upgrade that is not named by Connection is ignored',
  String.raw`
  >> GET /a HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: keep-alive\r\n\r\n
  .. headers GET /a host=x upgrade=websocket connection=keep-alive
  .. end
  `,
);

playServer(
  t,
  'an upgrade in HTTP/1.0 is ignored',
  String.raw`
  >> GET /a HTTP/1.0\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n
  .. headers GET /a connection=Upgrade upgrade=websocket close
  .. end
  `,
  { acceptHttp10: true },
);

playServer(
  t,
  'CONNECT has no body, and no upgrade',
  String.raw`
  >> CONNECT db:1 HTTP/1.1\r\nHost: db:1\r\nContent-Length: 0\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\nhello
  .. headers CONNECT db:1 host=db:1 content-length=0 connection=Upgrade upgrade=websocket
  !! begin 200
  << HTTP/1.1 200 OK\r\n\r\n
  .. data hello
  `,
);

playServer(
  t,
  'CONNECT is a tunnel once it is accepted',
  String.raw`
  >> CONNECT db.example:5432 HTTP/1.1\r\nHost: db.example:5432\r\n\r\nhello
  .. headers CONNECT db.example:5432 host=db.example:5432
  !! begin 200 content-length=5 transfer-encoding=chunked connection=x
  << HTTP/1.1 200 OK\r\n\r\n
  .. data hello
  !! last bye
  << bye
  .. close
  `,
);

playServer(
  t,
  'bytes after a refused CONNECT are not parsed as a request',
  String.raw`
  >> CONNECT db:1 HTTP/1.1\r\nHost: db:1\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n
  .. headers CONNECT db:1 host=db:1
  !! answer 403
  << HTTP/1.1 403 Forbidden\r\nconnection: close\r\ncontent-length: 0\r\n\r\n
  .. close
  `,
);

playServer(
  t,
  'CONNECT with a 300 response is not a tunnel',
  String.raw`
  >> CONNECT db:1 HTTP/1.1\r\nHost: db:1\r\n\r\nraw
  .. headers CONNECT db:1 host=db:1
  !! answer 300
  << HTTP/1.1 300 Multiple Choices\r\nconnection: close\r\ncontent-length: 0\r\n\r\n
  .. close
  `,
);

playServer(
  t,
  'a client that half-closes gets no response, and its later bytes are ignored',
  String.raw`
  >> GET /a HTTP/1.1\r\nHost: x\r\n\r\nGET /b HTTP/1.1\r\nHost: x\r\n\r\n
  .. headers GET /a host=x
  .. end
  !! fin
  .. reset termination
  .. close
  `,
);

playServer(
  t,
  'a response in progress is reset when the client half-closes',
  String.raw`
  >> GET /a HTTP/1.1\r\nHost: x\r\n\r\n
  .. headers GET /a host=x
  .. end
  !! begin 200 content-length=4
  << HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n
  !! fin
  .. reset termination
  .. close
  `,
);

playServer(
  t,
  'requests that are answered at once are answered although the client has half-closed; others are not',
  String.raw`
  !! auto 200
  !! blocked
  >> GET /a HTTP/1.1\r\nHost: x\r\n\r\nGET /b HTTP/1.1\r\nHost: x\r\n\r\nGET /c HTTP/1.1\r\nHost: x\r\n\r\n
  !! fin
  !! drained
  .. headers GET /a host=x
  .. end
  .. idle
  .. headers GET /b host=x
  .. end
  .. idle
  .. headers GET /c host=x
  .. end
  .. idle
  .. close
  << HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n
  << HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n
  `,
);

playServer(
  t,
  'a queued request is reset when it starts, if its client has half-closed and the response takes time',
  String.raw`
  !! blocked
  >> GET /a HTTP/1.1\r\nHost: x\r\n\r\nGET /b HTTP/1.1\r\nHost: x\r\n\r\n
  !! fin
  ..
  !! drained
  .. headers GET /a host=x
  .. end
  .. reset termination
  .. close
  `,
);

playServer(
  t,
  'a client that leaves within a head has begun a request, which is reset',
  String.raw`
  >> GET /a HTTP/1.1\r\nHo
  !! fin
  .. reset termination
  .. close
  `,
);

playServer(
  t,
  'a client that closes within its body resets the stream',
  String.raw`
  >> POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nabc
  .. headers POST /a host=x content-length=9
  .. data abc
  !! fin
  .. reset termination
  .. close
  `,
);

playServer(
  t,
  'a request with an invalid chunk is answered with 400 if nothing was sent yet',
  String.raw`
  >> POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcX
  .. headers POST /a host=x transfer-encoding=chunked
  .. data abc
  .. invalid 400 http1.codec_error
  .. close
  << HTTP/1.1 400 Bad Request\r\ncontent-length: 11\r\nconnection: close\r\n\r\nBad Request
  `,
);

playServer(
  t,
  'an invalid chunk after the response headers closes the connection',
  String.raw`
  >> POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n
  .. headers POST /a host=x transfer-encoding=chunked
  !! begin 200
  << HTTP/1.1 200 OK\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n
  >> 0x3\r\n
  .. reset protocol 400 http1.codec_error
  .. close
  `,
);

playServer(
  t,
  'a paused stream gets no events until it resumes',
  String.raw`
  >> POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\n\r\n
  .. headers POST /a host=x content-length=6
  !! pause
  >> abcdefGET /b HTTP/1.1\r\nHost: x\r\n\r\n
  !! blocked
  .. blocked
  !! drained
  .. drained
  !! resume
  .. data abcdef
  .. end
  !! pause
  !! answer 200
  << HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n
  .. idle
  .. headers GET /b host=x
  .. end
  `,
);

playServer(
  t,
  'destroying the codec ends an unfinished stream',
  String.raw`
  >> POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\n\r\nab
  .. headers POST /a host=x content-length=6
  .. data ab
  !! destroy
  .. reset termination
  !! answer 200
  >> cd
  `,
);

playServer(
  t,
  'absolute targets: the authority replaces Host, and the path is in origin form',
  String.raw`
  !! auto 200
  >> GET http://example.com:8080/a?b HTTP/1.1\r\nHost: other\r\nAccept: x\r\n\r\n
  .. headers GET /a?b accept=x host=example.com:8080
  .. end
  .. idle
  >> GET HTTPS://example.com HTTP/1.1\r\nHost: other\r\n\r\n
  .. headers GET / host=example.com
  .. end
  .. idle
  >> GET http://example.com?q=/ HTTP/1.1\r\nHost: other\r\n\r\n
  .. headers GET /?q=/ host=example.com
  .. end
  .. idle
  >> OPTIONS http://example.com HTTP/1.1\r\nHost: other\r\n\r\nOPTIONS * HTTP/1.1\r\nHost: other\r\n\r\n
  .. headers OPTIONS / host=example.com
  .. end
  .. idle
  .. headers OPTIONS * host=other
  .. end
  .. idle
  << HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n
  << HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n
  `,
);

playServer(
  t,
  'empty lines before a request are ignored; values lose the space around them',
  String.raw`
  >> \r\n\r\n\nGET / HTTP/1.1\r\nHost:\t x \t\r\nX-Empty:\r\nX-High: caf\xe9\r\n\r\n
  .. headers GET / host=x x-empty= x-high=caf\xe9
  .. end
  `,
);

t.test('the chunk size is the number of bytes, in hexadecimal', async (t) => {
  const peer = new ServerPeer();
  peer.receive('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  peer.turn(() => peer.begin({ start: '200', fields: [] }));
  peer.wire.take();
  for (const size of [1, 9, 10, 15, 16, 255, 256, 0xabc, 0xfff, 0x1000, 0xdef9]) {
    peer.turn(() => peer.body('a'.repeat(size), false));
    t.equal(peer.wire.take(), `${size.toString(16)}\r\n${'a'.repeat(size)}\r\n`, `${size} bytes`);
  }
  peer.turn(() => peer.body('', false));
  t.equal(peer.wire.take(), '', 'no chunk for 0 bytes, which would be the last one');
  peer.turn(() => peer.body('', true));
  t.equal(peer.wire.take(), '0\r\n\r\n');
});

t.test('chunk sizes of 16 digits and 16 KiB of extensions are accepted, for each message', async (t) => {
  const peer = new ServerPeer();
  peer.onRequest = () => peer.answer({ start: '204', fields: [] }, undefined);
  const post = 'POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n';
  for (let i = 0; i < 3; i++) {
    peer.receive(`${post}0000000000000005;${'a'.repeat(16_384)}\r\nhello\r\n0\r\n\r\n`);
    t.same(peer.journal.take().slice(1), ['data hello', 'end', 'idle']);
  }
});

t.test('no request starts while requests are held, and the queued ones start afterwards', async (t) => {
  const peer = new ServerPeer();
  peer.onRequest = () => peer.answer({ start: '204', fields: [] }, undefined);
  peer.turn(() => peer.codec.holdRequests());
  peer.receive('GET /a HTTP/1.1\r\nHost: x\r\n\r\n');
  t.same(peer.journal.take(), []);
  peer.turn(() => peer.codec.startRequests());
  t.same(peer.journal.take(), ['headers GET /a host=x', 'end', 'idle']);
});

t.test('an owner that refuses a request gets none of its events', async (t) => {
  const peer = new ServerPeer();
  peer.newStream = () => {
    peer.codec.destroy();
    return peer;
  };
  peer.receive('GET /a HTTP/1.1\r\nHost: x\r\n\r\nGET /b HTTP/1.1\r\nHost: x\r\n\r\n');
  t.same(peer.journal.take(), []);
  t.equal(peer.wire.memory.retainedBytes(), 0);
});

t.test('an owner learns whether the client may still send when its connection closes', async (t) => {
  const close = 'Host: x:1\r\nConnection: close\r\n\r\n';
  const cases: [what: string, request: string, expected: ExchangeEnd][] = [
    ['it announced the close', `GET / HTTP/1.1\r\n${close}`, ExchangeEnd.Last],
    ['it announced the close, and sends', `GET / HTTP/1.1\r\n${close}GET`, ExchangeEnd.Complete],
    ['bytes after a CONNECT belong to the tunnel', `CONNECT x:1 HTTP/1.1\r\n${close}`, ExchangeEnd.Complete],
    ['it is still sending', `POST / HTTP/1.1\r\nContent-Length: 2\r\n${close}a`, ExchangeEnd.None],
  ];
  for (const [what, request, expected] of cases) {
    const peer = new ServerPeer();
    const ends: ExchangeEnd[] = [];
    peer.onClose = (_abort: boolean, exchange?: ExchangeEnd) => {
      ends.push(exchange!);
    };
    peer.receive(request);
    peer.turn(() => peer.answer({ start: '403', fields: [] }, undefined));
    t.same(ends, [expected], what);
    peer.codec.destroy();
  }
});

t.test('an owner is notified once of a broken exchange, on either side and at any point', async (t) => {
  const upload = 'POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n';
  const whole = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';
  const begin = (peer: ServerPeer) => peer.begin({ start: '200', fields: [['content-length', '5']] });
  const none = () => {};
  const end = (peer: ServerPeer) => peer.codec.end();
  const nonsense = (peer: ServerPeer) => peer.wire.turn('zz\r\n', (at, length) => peer.codec.receive(at, length));
  const reset = (peer: ServerPeer) => peer.codec.reset(ResetReason.LocalReset);
  const cases: [what: string, request: string, answer: typeof begin, act: typeof begin, expected: ExchangeEnd][] = [
    ['the client closes during its request', upload, none, end, ExchangeEnd.Broken],
    ['the client closes before its response', whole, none, end, ExchangeEnd.Broken],
    ['the client closes during its response', whole, begin, end, ExchangeEnd.Broken],
    ['the client sends garbage during its response', upload, begin, nonsense, ExchangeEnd.Broken],
    ['answered garbage is not a broken exchange', upload, none, nonsense, ExchangeEnd.None],
    ['a reset by the owner is not a broken exchange', whole, begin, reset, ExchangeEnd.None],
  ];
  for (const [what, request, answer, act, expected] of cases) {
    const peer = new ServerPeer();
    const ends: ExchangeEnd[] = [];
    peer.onClose = (_abort: boolean, exchange?: ExchangeEnd) => {
      ends.push(exchange!);
    };
    peer.receive(request);
    peer.turn(() => answer(peer));
    act(peer);
    peer.turn(end.bind(undefined, peer));
    peer.turn(reset.bind(undefined, peer));
    peer.codec.destroy();
    t.same(ends, [expected], what);
  }
});

t.test('buffered bytes can be copied in order', async (t) => {
  const peer = new ServerPeer();
  peer.receive('GET / HT');
  peer.turn(() => peer.codec.blocked());
  peer.receive('TP/1.1\r\n');
  peer.receive('Host: x\r\n');
  t.equal(Buffer.from(peer.codec.copyBuffered()).toString('latin1'), 'GET / HTTP/1.1\r\nHost: x\r\n');
  peer.codec.destroy();
});

t.test('messages just within the limits are accepted', async (t) => {
  const methods =
    'GET HEAD POST PUT DELETE OPTIONS TRACE PATCH ACL BIND CHECKOUT COPY LINK LOCK MERGE MKACTIVITY MKCALENDAR MKCOL MOVE MSEARCH ' +
    'NOTIFY PROPFIND PROPPATCH PURGE REBIND REPORT SEARCH SOURCE SUBSCRIBE UNBIND UNLINK UNLOCK UNSUBSCRIBE';
  const hosts = ['x:0', 'x:9', 'x:', '[::1]:80', '[fe80::1%25eth0]', "a_b.~!$&'()*+,;=%41-", '127.0.0.1:65535'];
  const requests = [
    ...methods.split(' ').map((method) => `${method} / HTTP/1.1\r\nHost: x\r\n\r\n`),
    ...hosts.map((host) => `GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`),
    "GET / HTTP/1.1\r\nHost: x\r\n!#$%&'*+-.^_`|~09azAZ: a\r\n\r\n",
    'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9007199254740991\r\n\r\n',
    'POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0000000000000001\r\n\r\n',
  ];
  for (const request of requests) {
    const peer = new ServerPeer();
    peer.receive(request);
    t.match(peer.journal.take()[0], /^headers /, request);
    peer.codec.destroy();
  }
});

t.test('a codec is at rest while it holds no state of its connection', async (t) => {
  const get = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';
  const answer = (peer: ServerPeer) => peer.answer({ start: '204', fields: [] }, undefined);
  const peer = new ServerPeer();
  const first = peer.codec;
  t.ok(first.isAtRest, 'before the first byte');
  const staysAfter = (what: string, act: (peer: ServerPeer) => void) => {
    const { codec } = peer;
    act(peer);
    t.notOk(codec.isAtRest, what);
    t.equal(peer.codec, codec);
  };
  staysAfter('within a header section', () => peer.receive(get.slice(0, 10)));
  staysAfter('during an exchange', () => peer.receive(get.slice(10)));
  staysAfter('with a queued request', () => peer.receive(get));
  staysAfter('during the next exchange', () => peer.turn(() => answer(peer)));
  staysAfter('while the client does not read the response', () => {
    peer.turn(() => {
      peer.codec.blocked();
      answer(peer);
    });
  });
  peer.turn(() => peer.codec.drained());
  t.ok(first.isAtRest, 'when everything is answered and read');
  t.not(peer.codec, first);
  const second = peer.codec;
  peer.receive(get);
  peer.turn(() => answer(peer));
  t.ok(second.isAtRest, 'after an exchange');
  t.equal(peer.codec, first);
  staysAfter('while requests are held', () => peer.turn(() => peer.codec.holdRequests()));
  staysAfter('when the client has half-closed', () => peer.codec.end());
});

t.test('a partial line end of trailers is not an empty line between requests', async (t) => {
  const peer = new ServerPeer();
  peer.receive('POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r');
  t.notOk(peer.codec.holdsNoRequest);
  peer.receive('\n');
  peer.turn(() => peer.answer({ start: '204', fields: [] }, undefined));
  for (const bytes of ['\r', '\n']) {
    peer.receive(bytes);
    t.ok(peer.codec.holdsNoRequest, JSON.stringify(bytes));
  }
  peer.receive('G');
  t.notOk(peer.codec.holdsNoRequest, 'a header section has started');
});
