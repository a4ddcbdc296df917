// Receives the spans of examples/tracing.yaml as a Zipkin collector would, and prints a line of each.
//
//   node examples/span-receiver.mjs

import { createServer } from 'node:http';

createServer(async (request, response) => {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  for (const { duration, id, name, parentId = 'none', tags, traceId } of JSON.parse(Buffer.concat(chunks))) {
    const status = tags['http.status_code'];
    process.stdout.write(`trace ${traceId} span ${id} parent ${parentId}: ${name}, status ${status}, ${duration} µs\n`);
  }
  response.writeHead(202).end();
}).listen(9411, '127.0.0.1');
