// An external processor for examples/ext-proc.yaml, on port 50052. It adds a field to each request and to each response, and makes the
// bodies of responses upper case. It is written with Node alone, to show what a processor is: a gRPC call for each HTTP request, with
// a message for each part of it, and an answer to each message. Real ones use a gRPC library and Envoy's .proto files.
//
//   node examples/ext-processor.mjs

import { createServer } from 'node:http2';

const REQUEST_HEADERS = 2;
const RESPONSE_HEADERS = 3;
const RESPONSE_BODY = 5;

/** A field of a protobuf message with the bytes of another message or of a text. */
const field = (number, content) => {
  const bytes = Buffer.from(content);
  const length = [];
  for (let rest = bytes.length; ; rest >>>= 7) {
    length.push(rest > 127 ? (rest & 127) | 128 : rest);
    if (rest <= 127) break;
  }
  return Buffer.concat([Buffer.of((number << 3) | 2, ...length), bytes]);
};

/** Returns the first field of a message: its number and content. */
const firstField = (message) => {
  let length = 0;
  let at = 1;
  for (let shift = 0; ; shift += 7) {
    const byte = message[at++];
    length |= (byte & 127) << shift;
    if (byte < 128) break;
  }
  return { number: message[0] >> 3, content: message.subarray(at, at + length) };
};

/** CommonResponse.header_mutation.set_headers[0].header, with the value in raw_value. */
const setHeader = (key, value) => field(2, field(1, field(1, Buffer.concat([field(1, key), field(3, value)]))));
/** CommonResponse.body_mutation.body */
const setBody = (text) => field(3, field(1, text));

/** Returns the answer (ProcessingResponse) to a question (ProcessingRequest). */
const answer = (question) => {
  const { content, number } = firstField(question);
  // The fields of answers have the numbers of those of questions, less one.
  const respond = (change) => field(number - 1, change === undefined ? '' : field(1, change));
  if (number === REQUEST_HEADERS) return respond(setHeader('x-processed', 'yes'));
  if (number === RESPONSE_HEADERS) return respond(setHeader('x-processor', 'example'));
  // HttpBody.body is the first field of a body that is not empty.
  if (number === RESPONSE_BODY && content[0] === 10)
    return respond(setBody(firstField(content).content.toString('latin1').toUpperCase()));
  return respond();
};

const framed = (message) => {
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(message.length, 1);
  return Buffer.concat([prefix, message]);
};

const server = createServer();
server.on('stream', (stream) => {
  let received = Buffer.alloc(0);
  stream.on('error', () => {});
  stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true });
  stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': 0 }));
  stream.on('data', (bytes) => {
    received = Buffer.concat([received, bytes]);
    while (received.length >= 5 && received.length >= 5 + received.readUInt32BE(1)) {
      const end = 5 + received.readUInt32BE(1);
      stream.write(framed(answer(received.subarray(5, end))));
      received = received.subarray(end);
    }
  });
  stream.on('end', () => stream.end());
});
server.listen(50052, '127.0.0.1', () => process.stdout.write('an external processor listens on 50052\n'));
