// A receiver of notifications that does not read: the queue for it does not grow, and has the current state when it reads
// again.

import t from 'tap';
import { NotifyQueue } from '../../../src/io/notify/notify-queue.js';
import { waitFor } from '../../e2e/harness/wait-for.js';

t.test('the queue for a stalled receiver keeps the newest message of each kind, in the order of sending', async (t) => {
  const sent: string[] = [];
  let hasRoom = false;
  const queue = new NotifyQueue(
    (message) => {
      if (hasRoom) sent.push(message);
      return hasRoom;
    },
    () => t.fail('nothing is dropped'),
  );
  for (let count = 0; count < 10_000; count++) {
    queue.notify(`STATUS=epoch ${count} starting`);
    queue.notify(`RELOADING=1\nMONOTONIC_USEC=${count}`);
    queue.notify('X_BATON_EPOCH=serving');
    queue.notify('X_BATON_EPOCH=replaced');
    queue.notify(`READY=1\nSTATUS=epoch ${count} live`);
  }
  queue.pingWatchdog();
  queue.notify('STATUS=at last');
  hasRoom = true;
  await waitFor(() => sent.length > 0, { what: 'the queued messages' });
  t.same(sent, [
    'RELOADING=1\nMONOTONIC_USEC=9999',
    'X_BATON_EPOCH=serving',
    'X_BATON_EPOCH=replaced',
    'READY=1\nSTATUS=epoch 9999 live',
    'STATUS=at last',
  ]);
  queue.notify('STATUS=read at once');
  t.equal(sent.at(-1), 'STATUS=read at once');
});
