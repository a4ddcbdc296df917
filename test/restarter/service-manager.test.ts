// Notifications to the service manager, with a socket that may be full.

import t from 'tap';
import type { NotifySocket } from '../../src/restarter/notify-socket.js';
import { ServiceManager } from '../../src/restarter/service-manager.js';
import { waitFor } from '../e2e/harness/wait-for.js';

/** `take` returns whether the socket has room for a message. */
function manage(take: (text: string) => boolean = () => true) {
  const sent: string[] = [];
  const send = (_address: Uint8Array, text: string) => {
    if (!take(text)) return false;
    sent.push(text.replaceAll(/MAINPID=.*\n|(?<=MONOTONIC_USEC=).*/g, ''));
    return true;
  };
  const manager = new ServiceManager({ send } as unknown as NotifySocket, { NOTIFY_SOCKET: '/a/manager' });
  return { manager, sent };
}

t.test('a reload begins once, and ends only if it has begun; a status is sent when it changes', async (t) => {
  const { manager, sent } = manage();
  manager.reloading();
  manager.reloaded('nothing to reload');
  t.same(sent, [], 'a service that was never ready is starting, not reloading');
  manager.ready('epoch 0');
  manager.status('epoch 0');
  manager.reloaded('no reload');
  manager.reloading();
  manager.reloading();
  manager.reloaded('as before');
  manager.status('other');
  manager.status('other');
  t.same(sent, [
    'READY=1\nSTATUS=epoch 0',
    'RELOADING=1\nMONOTONIC_USEC=',
    'READY=1\nSTATUS=as before',
    'STATUS=other',
  ]);
});

t.test('messages to a full socket are sent later in order; watchdog pings do not accumulate', async (t) => {
  let hasRoom = false;
  const { manager, sent } = manage(() => hasRoom);
  manager.ready('epoch 0');
  manager.pingWatchdog();
  manager.status('later');
  manager.pingWatchdog();
  t.same(sent, []);
  hasRoom = true;
  await waitFor(() => sent.length >= 2, { what: 'the queued messages' });
  t.same(sent, ['READY=1\nSTATUS=epoch 0', 'STATUS=later']);
  manager.pingWatchdog();
  t.equal(sent.at(-1), 'WATCHDOG=1');
});

t.test('a message that cannot be sent is not retried, and blocks no other', async (t) => {
  let tries = 0;
  const { manager, sent } = manage((text) => {
    if (text !== 'STATUS=lost') return true;
    tries++;
    throw new Error('on purpose');
  });
  manager.status('lost');
  manager.status('found');
  manager.pingWatchdog();
  t.equal(tries, 1);
  t.same(sent, ['STATUS=found', 'WATCHDOG=1']);
});
