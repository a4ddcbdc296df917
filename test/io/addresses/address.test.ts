import { isIP } from 'node:net';
import fc from 'fast-check';
import t from 'tap';
import {
  AddressKind,
  addressOfText,
  addressText,
  decodeSockaddr,
  encodeAddress,
  encodeIp,
  encodePath,
  endpointIdOf,
  formatIp,
  internalAddress,
  internalNameOf,
  ipAddress,
  ipOfAddress,
  isInternal,
  parseAddress,
  parseIp,
  portOfAddress,
} from '../../../src/io/addresses/address.js';

const decode = (raw: Uint8Array) => decodeSockaddr(raw, 0, raw.length);

t.test('sockaddr bytes match Linux', async (t) => {
  t.same([...encodeIp('127.0.0.1', 80)], [2, 0, 0, 80, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
  t.same(
    [...encodeIp('fe80::1%3', 0x1234)],
    [10, 0, 0x12, 0x34, 0, 0, 0, 0, 0xfe, 0x80, ...Array(13).fill(0), 1, 3, 0, 0, 0],
  );
  t.same([...encodePath('/a')], [1, 0, 47, 97, 0]);
  t.same([...encodePath('@a')], [1, 0, 0, 97]);
});

t.test('invalid addresses are refused with their reason', async (t) => {
  for (const ip of [
    '',
    'localhost',
    '1.2.3',
    '1.2.3.4.5',
    '01.2.3.4',
    '256.1.1.1',
    '1.2.3.4 ',
    ':::',
    '1::2::3',
    'fe80::1%',
    '\u013127.0.0.1',
  ])
    t.throws(() => encodeIp(ip, 1), { code: 'CONFIG_INVALID' }, ip);
  t.throws(() => encodeIp('::1', 65536), /port 65536/);
  t.throws(() => encodePath(''), /empty/);
  t.throws(() => encodePath(`/${'x'.repeat(107)}`), /longer than 107/);
  t.doesNotThrow(() => encodePath(`/${'x'.repeat(106)}`));
  t.doesNotThrow(() => encodePath(`@${'x'.repeat(107)}`));
});

t.test('every IP address survives conversion to text and sockaddr, and reads as Node reads it', async () => {
  fc.assert(
    fc.property(fc.oneof(fc.ipV4(), fc.ipV6()), fc.nat(65535), (ip, port) => {
      const address = ipAddress(ip, port)!;
      const text = addressText(address);
      const back = parseAddress(text)!;
      const raw = encodeAddress(address);
      const decoded = decode(raw);
      const canonical = isIP(ip) === 4 ? ip : new URL(`http://[${ip}]/`).hostname.slice(1, -1);
      const isMapped = address.ip.startsWith('::ffff:') && address.ip.includes('.');
      return (
        back.ip === address.ip &&
        back.port === port &&
        back.kind === address.kind &&
        (isMapped ? decoded.kind === AddressKind.Ip4 : decoded.ip === address.ip && decoded.port === port) &&
        (isMapped || address.ip === canonical)
      );
    }),
    { numRuns: 2000 },
  );
});

t.test('an address is accepted exactly when Node accepts it', async () => {
  const piece = fc.constantFrom('0', '1', 'ff', '12345', ':', '::', '.', '255', '256', '1.2.3.4', 'g', '01', '');
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 12 }), (pieces) => {
      const text = pieces.join('');
      return (parseIp(text)?.length ?? 0) === (isIP(text) === 4 ? 4 : isIP(text) === 6 ? 16 : 0);
    }),
    { numRuns: 20_000 },
  );
});

t.test('an IPv4 peer of a dual-stack socket is an IPv4 address', async (t) => {
  t.match(decode(encodeIp('::ffff:10.1.2.3', 99)), { kind: AddressKind.Ip4, ip: '10.1.2.3', port: 99 });
  t.equal(formatIp(parseIp('::ffff:a01:203')!), '::ffff:10.1.2.3');
});

t.test('Unix sockets may be named, abstract or unnamed', async (t) => {
  for (const path of ['/run/x.sock', '@name', '@']) {
    const address = decode(encodePath(path));
    t.match(address, { kind: AddressKind.Unix, path, ip: '' });
    t.equal(addressText(address), path);
    t.same(parseAddress(path), address);
  }
  t.equal(parseAddress('unix:///run/x.sock')?.path, '/run/x.sock');
  t.equal(decodeSockaddr(Uint8Array.of(1, 0), 0, 2).kind, AddressKind.None);
  t.equal(decodeSockaddr(new Uint8Array(), 0, 0).kind, AddressKind.None);
});

t.test('a sockaddr is read at its offset', async (t) => {
  const raw = encodeIp('fe80::7%4', 5);
  const padded = new Uint8Array(40);
  padded.set(raw, 7);
  t.equal(addressText(decodeSockaddr(padded, 7, raw.length)), '[fe80::7%4]:5');
});

t.test('addresses have the documented text forms', async (t) => {
  for (const text of [
    '127.0.0.1',
    '::1:80',
    '[::1]',
    '[127.0.0.1]:80',
    '1.2.3.4:65536',
    '1.2.3.4:',
    'localhost:80',
    '',
  ])
    t.equal(parseAddress(text), undefined, text);
});

t.test('internal addresses are encoded, decoded and taken apart', async (t) => {
  const address = internalAddress('a/b', 'c:1');
  t.equal(addressText(address), 'envoy://a/b/c:1');
  const raw = encodeAddress(address);
  t.ok(isInternal(raw));
  t.same(decode(raw), address);
  t.same(addressOfText('envoy://a/b/c:1'), address);
  t.equal(internalNameOf('envoy://a/b/c:1'), 'a/b');
  t.equal(endpointIdOf('envoy://a/b/c:1'), 'c:1');
  t.equal(addressText(internalAddress('a')), 'envoy://a/');
  t.equal(ipOfAddress('envoy://a/1:2'), '', 'it has neither IP address nor port');
  t.equal(portOfAddress('envoy://a/1:2'), 0);
  t.equal(parseAddress('envoy://a/1:2'), undefined, 'no text from outside becomes one');
  for (const other of [encodeIp('127.0.0.1', 80), encodeIp('::1', 80), encodePath('/a')]) t.notOk(isInternal(other));
});
