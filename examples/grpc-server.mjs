// A gRPC server for the examples: example.Greeter on port 50051, with a unary method and one that streams its answers. It is written
// with Node alone, to show what a call is: an HTTP/2 request with messages in frames, and a status in the trailers.
//
//   node examples/grpc-server.mjs

import { createServer } from 'node:http2';

const OK = 0;
const INVALID_ARGUMENT = 3;
const UNIMPLEMENTED = 12;

/** Each takes the text of a request and returns those of its answers, or an error. */
const METHODS = {
  '/example.Greeter/Greet': (name) => (name === '' ? { status: INVALID_ARGUMENT, message: 'who are you?' } : [`Hello ${name}`]),
  '/example.Greeter/Count': () => ['one', 'two', 'three'],
};

/** A frame (flags, four bytes of length) with a message that has one field: `string text = 1`, shorter than 128 bytes. */
const encode = (text) => {
  const message = Buffer.concat([Buffer.of(10, Buffer.byteLength(text)), Buffer.from(text)]);
  const header = Buffer.alloc(5);
  header.writeUInt32BE(message.length, 1);
  return Buffer.concat([header, message]);
};
const decode = (frame) => frame.subarray(7).toString();

const server = createServer();
server.on('stream', (stream, headers) => {
  const parts = [];
  stream.on('error', () => {});
  stream.on('data', (part) => parts.push(part));
  stream.on('end', () => {
    const method = METHODS[headers[':path']];
    const answers = method?.(decode(Buffer.concat(parts))) ?? { status: UNIMPLEMENTED, message: 'no such method' };
    const head = { ':status': 200, 'content-type': 'application/grpc' };
    if (!Array.isArray(answers)) {
      const error = { 'grpc-status': answers.status, 'grpc-message': encodeURIComponent(answers.message) };
      return stream.respond({ ...head, ...error }, { endStream: true });
    }
    stream.respond(head, { waitForTrailers: true });
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': OK }));
    for (const answer of answers) stream.write(encode(answer));
    stream.end();
  });
});
server.listen(50051, '127.0.0.1', () => process.stdout.write('a gRPC server listens on 50051\n'));
