// The gauges of bytes that connections buffer.

import t from 'tap';
import { BufferedBytes } from '../../src/io/buffered-bytes.js';

t.test('each round sets the gauges to the bytes that connections buffered in it', async (t) => {
  const changes: string[] = [];
  const gauges = (name: string) => ({
    set: (at: number, value: number) => void changes.push(`${name}[${at}]=${value}`),
  });
  const http = gauges('http');
  const tcp = gauges('tcp');
  const sums = new BufferedBytes();
  const round = (add: () => void): string[] => {
    add();
    sums.finishRound();
    return changes.splice(0);
  };
  t.same(
    round(() => {
      sums.add(http, 4, 10, 6, 0);
      sums.add(http, 4, 5, 6, 100);
      sums.add(tcp, 1, 0, 3, 0);
    }),
    ['http[4]=15', 'http[6]=100'],
    'connections without buffered bytes are skipped',
  );
  t.same(
    round(() => sums.add(tcp, 1, 0, 3, 7)),
    ['http[4]=0', 'http[6]=0', 'tcp[1]=0', 'tcp[3]=7'],
  );
  t.same(
    round(() => {}),
    ['tcp[1]=0', 'tcp[3]=0'],
  );
  t.same(
    round(() => {}),
    [],
  );
});
