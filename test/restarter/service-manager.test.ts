// What the service manager is told, whatever its socket takes.

import t from 'tap';
import type { NotifySocket } from '../../src/restarter/notify-socket.js';
import { ServiceManager } from '../../src/restarter/service-manager.js';
import { waitFor } from '../e2e/harness/wait-for.js';

/** `take` says of each message whether the socket has room for it. */
function manage(take: (text: string) => boolean = () => true) {
  const told: string[] = [];
  const send = (_address: Uint8Array, text: string) => {
    if (!take(text)) return false;
    told.push(text.replaceAll(/MAINPID=.*\n|(?<=MONOTONIC_USEC=).*/g, ''));
    return true;
  };
  const manager = new ServiceManager({ send } as unknown as NotifySocket, { NOTIFY_SOCKET: '/a/manager' });
  return { manager, told };
}

t.test('a reload begins once, and ends only if it has begun; a status is told when it is another one', async (t) => {
  const { manager, told } = manage();
  manager.reloading();
  manager.reloaded('nothing to reload');
  t.same(told, [], 'what was never ready is started, not reloaded');
  manager.ready('epoch 0');
  manager.status('epoch 0');
  manager.reloaded('no reload');
  manager.reloading();
  manager.reloading();
  manager.reloaded('as before');
  manager.status('other');
  manager.status('other');
  t.same(told, [
    'READY=1\nSTATUS=epoch 0',
    'RELOADING=1\nMONOTONIC_USEC=',
    'READY=1\nSTATUS=as before',
    'STATUS=other',
  ]);
});

t.test('what a socket has no room for is told later, in order; signs of life do not pile up', async (t) => {
  let hasRoom = false;
  const { manager, told } = manage(() => hasRoom);
  manager.ready('epoch 0');
  manager.pingWatchdog();
  manager.status('later');
  manager.pingWatchdog();
  t.same(told, []);
  hasRoom = true;
  await waitFor(() => told.length >= 2, { what: 'what is waiting' });
  t.same(told, ['READY=1\nSTATUS=epoch 0', 'STATUS=later']);
  manager.pingWatchdog();
  t.equal(told.at(-1), 'WATCHDOG=1');
});

t.test('what cannot be told at all is not tried again, and nothing waits behind it', async (t) => {
  let tries = 0;
  const { manager, told } = manage((text) => {
    if (text !== 'STATUS=lost') return true;
    tries++;
    throw new Error('on purpose');
  });
  manager.status('lost');
  manager.status('found');
  manager.pingWatchdog();
  t.equal(tries, 1);
  t.same(told, ['STATUS=found', 'WATCHDOG=1']);
});
