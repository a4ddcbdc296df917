// Receives the output of the sinks in examples/stats-sinks.yaml, and prints a line of each message: statsd over UDP on 8125 and
// over TCP on 8126, DogStatsD on a Unix socket, Graphite on 8127, both gRPC services on 4317, OpenTelemetry over HTTP on 4318.
//
//   node examples/stats-receiver.mjs [word]     only lines with that word

import { createSocket } from 'node:dgram';
import { rmSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import grpc from '@grpc/grpc-js';
import unix from 'unix-dgram';
import { loadMessages } from '../dist/src/config/schema/messages.js';

const DOG_PATH = join(tmpdir(), 'baton-dogstatsd.sock');
const MESSAGE = 'envoy.service.metrics.v3.StreamMetricsMessage';
const REQUEST = 'opentelemetry.proto.collector.metrics.v1.ExportMetricsServiceRequest';
const types = loadMessages(MESSAGE, REQUEST);
const [word = ''] = process.argv.slice(2);

function show(from, line) {
  if (line.includes(word)) process.stdout.write(`${from}: ${line}\n`);
}

function showLines(from, text) {
  for (const line of text.split('\n')) show(from, line);
}

createSocket('udp4')
  .on('message', (datagram) => showLines('statsd', datagram.toString()))
  .bind(8125, '127.0.0.1');
createSocket('udp4')
  .on('message', (datagram) => showLines('graphite', datagram.toString()))
  .bind(8127, '127.0.0.1');
createServer((socket) => {
  socket.on('error', () => {});
  createInterface(socket).on('line', (line) => show('statsd over TCP', line));
}).listen(8126, '127.0.0.1');

rmSync(DOG_PATH, { force: true });
unix.createSocket('unix_dgram', (datagram) => showLines('dogstatsd', datagram.toString())).bind(DOG_PATH);

const server = new grpc.Server();
server.addService(
  { Stream: method('/envoy.service.metrics.v3.MetricsService/StreamMetrics', MESSAGE, true) },
  {
    Stream(call) {
      call.on('error', () => {});
      call.on('data', ({ envoy_metrics: families }) => {
        for (const family of families) show('metrics service', JSON.stringify(family));
      });
    },
  },
);
server.addService(
  { Export: method('/opentelemetry.proto.collector.metrics.v1.MetricsService/Export', REQUEST, false) },
  {
    Export({ request }, answer) {
      showMetrics('open telemetry', request);
      answer(null, Buffer.alloc(0));
    },
  },
);
server.bindAsync('127.0.0.1:4317', grpc.ServerCredentials.createInsecure(), () => {});

createHttpServer((request, response) => {
  const pieces = [];
  request.on('data', (piece) => pieces.push(piece));
  request.on('end', () => {
    showMetrics('open telemetry over HTTP', decode(REQUEST, Buffer.concat(pieces)));
    response.writeHead(200, { 'content-type': 'application/x-protobuf' }).end();
  });
}).listen(4318, '127.0.0.1');

function showMetrics(from, { resource_metrics: resources }) {
  const scopes = resources.flatMap((resource) => resource.scope_metrics);
  for (const metric of scopes.flatMap((scope) => scope.metrics)) show(from, JSON.stringify(metric));
}

function decode(name, bytes) {
  return types[name].toObject(types[name].decode(bytes), { longs: Number, enums: String });
}

function method(path, name, requestStream) {
  return {
    path,
    requestStream,
    responseStream: false,
    requestSerialize: (bytes) => bytes,
    requestDeserialize: (bytes) => decode(name, bytes),
    responseSerialize: (bytes) => bytes,
    responseDeserialize: (bytes) => bytes,
  };
}
