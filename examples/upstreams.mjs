// Upstreams for the examples: ports 8081 to 8083 answer with the received request, and 8084 fails two of three requests, which
// shows retries.
//
//   node examples/upstreams.mjs

import { createServer } from 'node:http';

for (const port of [8081, 8082, 8083, 8084]) {
  let requests = 0;
  createServer((request, response) => {
    const isFailing = port === 8084 && ++requests % 3 !== 0;
    const head = Object.entries(request.headers).map(([name, value]) => `${name}: ${value}`);
    request.resume().on('end', () => {
      response.writeHead(isFailing ? 503 : 200, { 'content-type': 'text/plain', 'x-powered-by': 'node' });
      response.end(`${port} has received:\n\n${request.method} ${request.url}\n${head.join('\n')}\n`);
    });
  }).listen(port, '127.0.0.1', () => process.stdout.write(`an upstream listens on ${port}\n`));
}
