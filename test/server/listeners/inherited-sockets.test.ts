// Sockets of a parent process are taken only if they are what the listener would have bound itself.

import { closeSync, openSync } from 'node:fs';
import { connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import {
  type Address,
  AddressKind,
  addressText,
  decodeSockaddr,
  encodeAddress,
} from '../../../src/io/addresses/address.js';
import { loadShim } from '../../../src/io/shim.js';
import type { ReceivedSockets } from '../../../src/restart/received-sockets.js';
import { InheritedSockets } from '../../../src/server/listeners/version/inherited-sockets.js';
import { tempDir } from '../../e2e/harness/environment.js';

const shim = loadShim();
const TRAITS = 'traits';

/** A listen socket as a parent creates it. */
function open(address: Address, { v6Only = true, reusePort = true, listens = true } = {}): number {
  const options = { reusePort, freebind: false, transparent: false, v6Only };
  const fd = shim.openListenSocket(encodeAddress(address), options);
  if (listens) shim.listen(fd, 10);
  return fd;
}

function boundTo(fd: number): Address {
  const raw = shim.boundAddress(fd);
  return decodeSockaddr(raw, 0, raw.length);
}

const ip = (text: string, port = 0): Address => {
  return { kind: text.includes(':') ? AddressKind.Ip6 : AddressKind.Ip4, ip: text, port, path: '' };
};
const unix = (path: string): Address => ({ kind: AddressKind.Unix, ip: '', port: 0, path });

/** Returns which of the sockets that the parent attributes to this listener are taken. */
function taken(
  t: Test,
  wanted: Address,
  real: Address,
  fds: readonly number[],
  given: Partial<ReceivedSockets> = {},
  v6Only = true,
) {
  const offered: ReceivedSockets = {
    ...{ id: 7, isAdmin: false, name: 'door', configured: addressText(wanted), real: addressText(real) },
    ...{ traits: TRAITS, isReusePort: wanted.kind !== AddressKind.Unix, fds },
    ...given,
  };
  const inherited = new InheritedSockets(shim, [offered]);
  const found = given.isAdmin
    ? inherited.takeAdmin(wanted, v6Only)
    : inherited.takeListener({ name: 'door', address: wanted, traits: TRAITS, v6Only, isDatagram: false });
  t.same(inherited.taken, found === undefined ? [] : [7], 'the parent is notified of what was taken');
  inherited.closeRest();
  for (const fd of found?.fds ?? []) shim.closeDescriptor(fd);
  return found;
}

t.test("a socket that is bound to the listener's address, and listens, is taken", async (t) => {
  const directory = tempDir(t);
  for (const wanted of [ip('127.0.0.1'), ip('0.0.0.0'), ip('::1'), ip('::'), ip('::ffff:127.0.0.1')]) {
    // Such an address is for sockets of both families.
    const v6Only = !wanted.ip.startsWith('::ffff:');
    const first = open(wanted, { v6Only });
    const real = { ...wanted, port: boundTo(first).port };
    const second = open(real, { v6Only });
    t.match(taken(t, wanted, real, [first, second], {}, v6Only), { address: real, fds: [first, second] });
  }
  for (const path of [join(directory, 'socket'), '@baton-test-inherited']) {
    const fd = open(unix(`${path}-${process.pid}`));
    const wanted = unix(`${path}-${process.pid}`);
    t.match(taken(t, wanted, wanted, [fd]), { address: wanted, fds: [fd] });
  }
  const admin = open(ip('127.0.0.1'), { reusePort: false });
  const real = boundTo(admin);
  t.match(taken(t, ip('127.0.0.1'), real, [admin], { isAdmin: true, name: '', traits: '', isReusePort: false }), {
    address: real,
  });
});

t.test('a socket that is bound elsewhere is refused, whatever the parent says', async (t) => {
  const other = open(ip('127.0.0.1'));
  const { port } = boundTo(other);
  const cases: [what: string, wanted: Address, real: Address, fd: number][] = [
    ['another port', ip('127.0.0.1', port === 65535 ? 1 : port + 1), ip('127.0.0.1', port), other],
    ['another address', ip('127.0.0.1'), ip('127.0.0.2', port), open(ip('127.0.0.2', port))],
    ['a wildcard', ip('127.0.0.1'), ip('127.0.0.1', 0), open(ip('0.0.0.0'))],
    ['an address for a wildcard', ip('0.0.0.0'), ip('0.0.0.0', port), open(ip('127.0.0.1', port))],
    ['another family', ip('0.0.0.0'), ip('0.0.0.0'), open(ip('::'), { v6Only: false })],
    ['a mapped one', ip('127.0.0.1'), ip('127.0.0.1'), open(ip('::ffff:127.0.0.1'), { v6Only: false })],
    ['one for both families', ip('::'), ip('::'), open(ip('::'), { v6Only: false })],
    ['one without SO_REUSEPORT', ip('127.0.0.1'), ip('127.0.0.1'), open(ip('127.0.0.1'), { reusePort: false })],
    ['another name', unix('@baton-a'), unix('@baton-a'), open(unix(`@baton-test-b-${process.pid}`))],
    ['a path for a name', unix('@baton-a'), unix('@baton-a'), open(unix(join(tempDir(t), 'baton-a')))],
    ['a Unix socket', ip('127.0.0.1'), ip('127.0.0.1', port), open(unix(`@baton-test-c-${process.pid}`))],
  ];
  for (const [what, wanted, real, fd] of cases) {
    const isIp = real.kind !== AddressKind.Unix;
    const claimed = isIp && real.port === 0 ? { ...real, port: boundTo(fd).port } : real;
    const names = { configured: addressText(wanted) };
    t.equal(taken(t, wanted, claimed, [fd], names), undefined, what);
    t.throws(() => shim.boundAddress(fd), { code: 'EBADF' }, 'it is closed');
  }
});

t.test('a socket that does not listen for streams is refused, and the rest is taken', async (t) => {
  const listening = open(ip('127.0.0.1'));
  const real = boundTo(listening);
  const bound = open(real, { listens: false });
  const [packets, other] = shim.socketPair();
  const datagrams = shim.openMeetingSocket(encodeAddress(unix(`@baton-test-d-${process.pid}`)));
  const file = openSync('/dev/null', 'r');
  const copy = shim.duplicate(file);
  closeSync(file);
  t.match(taken(t, ip('127.0.0.1'), real, [bound, packets, listening, datagrams, copy]), { fds: [listening] });
  shim.closeDescriptor(other);
});

t.test('a connection accepted at the address is not a listen socket', async (t) => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { readonly port: number };
  const connected = new Promise<Socket>((resolve) => server.once('connection', resolve));
  const client = connect(port, '127.0.0.1');
  const accepted = await connected;
  const { fd } = (accepted as Socket & { readonly _handle: { readonly fd: number } })._handle;
  t.equal(taken(t, ip('127.0.0.1', port), ip('127.0.0.1', port), [shim.duplicate(fd)]), undefined);
  client.destroy();
  accepted.destroy();
  server.close();
});
