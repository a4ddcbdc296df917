import t from 'tap';
import { outcomeStatus } from '../../../src/http/headers/grpc-outcome.js';
import { responseHead } from '../routing/heads.js';

const GRPC = 'content-type: application/grpc+proto';

t.test('a gRPC response is judged by the grpc-status in its headers', async (t) => {
  const cases: [string, number][] = [
    ['0', 200],
    ['2', 500],
    ['4', 504],
    ['5', 404],
    ['14', 503],
    ['16', 401],
    ['17', 500],
    ['', 500],
    ['x', 500],
  ];
  for (const [code, status] of cases) {
    t.equal(outcomeStatus(responseHead(200, GRPC, `grpc-status: ${code}`)), status, `'${code}'`);
  }
});

t.test('any other response is judged by its HTTP status', async (t) => {
  t.equal(outcomeStatus(responseHead(200, GRPC)), 200, 'the grpc-status is in the trailers');
  t.equal(outcomeStatus(responseHead(503, GRPC)), 503);
  t.equal(outcomeStatus(responseHead(200, 'content-type: text/plain', 'grpc-status: 14')), 200);
});
