// A gRPC server for the examples: example.Greeter on port 50051, with a unary method and one that streams its answers.
//
//   node examples/grpc-server.mjs

import { Server, ServerCredentials, status } from '@grpc/grpc-js';

// Requests and answers are messages with one field: `string text = 1`, shorter than 128 bytes.
const encode = (text) => Buffer.concat([Buffer.of(10, Buffer.byteLength(text)), Buffer.from(text)]);
const decode = (message) => message.subarray(2).toString();

const method = (name, responseStream) => ({
  path: `/example.Greeter/${name}`,
  requestStream: false,
  responseStream,
  requestSerialize: encode,
  requestDeserialize: decode,
  responseSerialize: encode,
  responseDeserialize: decode,
});

const server = new Server();
server.addService(
  { Greet: method('Greet', false), Count: method('Count', true) },
  {
    Greet: ({ request }, done) =>
      request === ''
        ? done({ code: status.INVALID_ARGUMENT, details: 'who are you?' })
        : done(null, `Hello ${request}`),
    Count(call) {
      for (const number of ['one', 'two', 'three']) call.write(number);
      call.end();
    },
  },
);
server.bindAsync('127.0.0.1:50051', ServerCredentials.createInsecure(), (error, port) => {
  if (error !== null) throw error;
  process.stdout.write(`a gRPC server listens on ${port}\n`);
});
