// Notifications to the process that started the server, even if it reads late.

import t from 'tap';
import { AddressKind, encodeAddress } from '../../../src/io/addresses/address.js';
import { loadShim, type MessageSocketEvents } from '../../../src/io/shim.js';
import { Notifier } from '../../../src/server/restart/notify.js';
import { waitFor } from '../../e2e/harness/wait-for.js';

const shim = loadShim();
const IGNORED: MessageSocketEvents = { onMessage() {}, onWritable() {}, onEnd() {} };

t.test('a process that has not read for a while is notified that the server is live', async (t) => {
  const name = (what: string) => `@baton-test-notify-${what}-${process.pid}`;
  const address = (what: string) => encodeAddress({ kind: AddressKind.Unix, ip: '', port: 0, path: name(what) });
  const fd = shim.openMeetingSocket(address('reader'));
  const other = shim.watchMessages(shim.openMeetingSocket(address('other')), IGNORED);
  while (other.sendTo(address('reader'), Buffer.from('NOISE=1'), []));
  const notifier = Notifier.open(shim, { NOTIFY_SOCKET: name('reader'), WATCHDOG_USEC: '2000' }, false)!;
  notifier.live();
  const received: string[] = [];
  const reader = shim.watchMessages(fd, {
    ...IGNORED,
    onMessage: (bytes) => received.push(Buffer.from(bytes).toString()),
  });
  t.teardown(() => {
    for (const each of [notifier, reader, other]) each.close();
  });
  const messages = () => received.filter((message) => message !== 'NOISE=1' && message !== 'WATCHDOG=1');
  await waitFor(() => messages().length === 2, { what: 'both notifications' });
  t.same(messages(), ['STATUS=initializing', 'READY=1\nSTATUS=live']);
});
